#include "tokenizer/gguf/form.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "tokenizer/gguf/forms/forming.hpp"
#include "tokenizer/gguf/repeated_tokens.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

using gguf_forms::Forming;

// BPE of tokenizer.json: of bytes like GPT-2's, or of characters like SentencePiece's.
std::string form_bpe(Forming& of) {
  const Fields model = *of.pipeline.map("model");
  if (!model.text("continuing_subword_prefix", "").empty() || !model.text("end_of_word_suffix", "").empty()) {
    return "whose tokens have a prefix or a suffix by their place in a word";
  }
  of.take_tokens();
  of.name_unused_tokens();
  const std::vector<Fields> cuts = gguf_forms::steps_of(of.pipeline, "pre_tokenizer", "pretokenizers");
  const bool byte_level =
      std::ranges::any_of(cuts, [](const Fields& step) { return step.text("type", "") == "ByteLevel"; });
  if (std::string why_not = byte_level ? form_gpt2(of, model, cuts) : form_llama(of, model, cuts); !why_not.empty())
    return why_not;
  of.take_special_tokens();
  of.check_added_tokens();
  return {};
}

struct Algorithm {
  VocabularyKind kind;
  std::string_view model;  // of tokenizer.json; empty: from another file
  std::string (*form)(Forming& of);
};
constexpr std::array<Algorithm, 5> kAlgorithms = {{
    {VocabularyKind::sentencepiece_bpe, "", gguf_forms::form_sentencepiece_bpe},
    {VocabularyKind::sentencepiece_unigram, "", gguf_forms::form_sentencepiece_unigram},
    {VocabularyKind::pipeline, "BPE", form_bpe},
    {VocabularyKind::pipeline, "Unigram", gguf_forms::form_unigram},
    {VocabularyKind::pipeline, "WordPiece", gguf_forms::form_word_piece},
}};

std::string formed(Forming& of) {
  const auto model = of.pipeline.map("model");
  const std::string type = model ? model->text("type", "") : "";
  const auto* const algorithm = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm_row) {
    return algorithm_row.kind == of.vocabulary.kind && (algorithm_row.model.empty() || algorithm_row.model == type);
  });
  if (algorithm != kAlgorithms.end()) return algorithm->form(of);
  return of.vocabulary.kind == VocabularyKind::pipeline
             ? fmt::format("of the model {}", type.empty() ? "that is missing" : type)
             : "of this kind";
}

}  // namespace

GgufForm gguf_form(const Vocabulary& vocabulary, const std::string& general_name) {
  Forming of(vocabulary, general_name);
  if (const std::string why_not = formed(of); !why_not.empty())
    return {std::nullopt, {fmt::format("gguf cannot hold a vocabulary {}: it is left out", why_not)}};
  const std::vector<std::size_t> repeated = name_repeated_tokens(of.gguf.tokens);
  for (const std::size_t id : repeated) of.gguf.token_type[id] = token_type_number(TokenType::unused);
  if (!repeated.empty()) of.lose(describe_repeated_tokens(repeated));
  return {std::move(of.gguf), std::move(of.losses)};
}

std::optional<Vocabulary> sentencepiece_form(const Vocabulary& vocabulary) {
  if (vocabulary.kind != VocabularyKind::pipeline) return std::nullopt;
  const std::optional<GgufTokenizer> form = gguf_form(vocabulary).tokenizer;
  if (!form || form->model != "llama") return std::nullopt;
  Vocabulary result;
  result.special_ids() = vocabulary.special_ids();
  result.max_length = vocabulary.max_length;
  result.add_dummy_prefix = form->add_space_prefix.value_or(true);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_unknown = vocabulary.unk_id >= 0 && static_cast<std::size_t>(vocabulary.unk_id) == id;
    result.add(vocabulary.text(id), form->scores[id], is_unknown ? TokenType::unknown : vocabulary.type(id));
  }
  return result;
}

}  // namespace poise
