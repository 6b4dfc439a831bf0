#include "tokenizer/gguf/form.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/short_text.hpp"
#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

using gguf_forms::FormBuilder;

// Converts BPE of tokenizer.json, whose tokens are bytes as in GPT-2, or characters as in SentencePiece.
std::string convert_bpe(FormBuilder& builder) {
  const Fields model = *builder.pipeline.find_map("model");
  if (!model.read_text("continuing_subword_prefix", "").empty() || !model.read_text("end_of_word_suffix", "").empty()) {
    return "whose tokens have a prefix or a suffix by their place in a word";
  }
  builder.convert_tokens();
  builder.name_unused_tokens();
  const std::vector<Fields> cuts = gguf_forms::collect_steps(builder.pipeline, "pre_tokenizer", "pretokenizers");
  const bool byte_level =
      std::ranges::any_of(cuts, [](const Fields& step) { return step.read_text("type", "") == "ByteLevel"; });
  if (std::string why_not = byte_level ? convert_to_gpt2(builder, model, cuts) : convert_to_llama(builder, model, cuts);
      !why_not.empty())
    return why_not;
  builder.convert_special_tokens();
  builder.report_added_tokens();
  return {};
}

struct Algorithm {
  VocabularyKind kind;
  std::string_view model;  // the model in tokenizer.json; empty: the vocabulary is from another file
  std::string (*convert)(FormBuilder& builder);
};
constexpr std::array<Algorithm, 5> kAlgorithms = {{
    {VocabularyKind::sentencepiece_bpe, "", gguf_forms::convert_sentencepiece_bpe},
    {VocabularyKind::sentencepiece_unigram, "", gguf_forms::convert_sentencepiece_unigram},
    {VocabularyKind::pipeline, "BPE", convert_bpe},
    {VocabularyKind::pipeline, "Unigram", gguf_forms::convert_unigram},
    {VocabularyKind::pipeline, "WordPiece", gguf_forms::convert_word_piece},
}};

// Returns why GGUF cannot hold the vocabulary, or an empty text.
std::string convert_vocabulary(FormBuilder& builder) {
  const auto model = builder.pipeline.find_map("model");
  const std::string type = model ? model->read_text("type", "") : "";
  const auto* const algorithm = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm_row) {
    return algorithm_row.kind == builder.vocabulary.kind &&
           (algorithm_row.model.empty() || algorithm_row.model == type);
  });
  if (algorithm != kAlgorithms.end()) return algorithm->convert(builder);
  return builder.vocabulary.kind == VocabularyKind::pipeline
             ? (type.empty() ? "without a model" : fmt::format("of the model {}", type))
             : "of this kind";
}

}  // namespace

GgufForm make_gguf_form(const Vocabulary& vocabulary, const std::string& general_name) {
  FormBuilder builder(vocabulary, general_name);
  if (const std::string why_not = convert_vocabulary(builder); !why_not.empty())
    return {std::nullopt, {fmt::format("gguf cannot hold a vocabulary {}: it is left out", why_not)}};
  const std::vector<std::size_t> repeated = rename_repeated_tokens(builder.gguf.tokens);
  for (const std::size_t id : repeated) builder.gguf.token_type[id] = find_token_type_number(TokenType::unused);
  if (!repeated.empty()) builder.add_loss(describe_repeated_tokens("gguf", repeated));
  return {std::move(builder.gguf), std::move(builder.losses), std::move(builder.lost_steps), builder.prepend_first};
}

std::optional<SentencePieceForm> make_sentencepiece_form(const Vocabulary& vocabulary) {
  if (vocabulary.kind != VocabularyKind::pipeline) return std::nullopt;
  GgufForm made = make_gguf_form(vocabulary);
  const std::optional<GgufTokenizer>& form = made.tokenizer;
  if (!form || form->model != "llama") return std::nullopt;
  Vocabulary result;
  result.special_ids() = vocabulary.special_ids();
  result.max_length = vocabulary.max_length;
  result.add_dummy_prefix = form->add_space_prefix.value_or(true);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_unknown = vocabulary.unk_id >= 0 && static_cast<std::size_t>(vocabulary.unk_id) == id;
    result.add(vocabulary.text(id), form->scores[id], is_unknown ? TokenType::unknown : vocabulary.type(id));
  }
  return SentencePieceForm{std::move(result), std::move(made.lost_steps), made.prepend_first};
}

}  // namespace poise

namespace poise::gguf_forms {

namespace {

std::optional<std::int32_t> make_optional_id(std::int32_t id) { return id < 0 ? std::nullopt : std::optional(id); }

// Returns when Metaspace puts U+2581 in front: "always", "first" (only at the beginning of a text), or "never".
std::string read_prepend_scheme(const Fields& metaspace) {
  return metaspace.read_text("prepend_scheme", metaspace.read_boolean("add_prefix_space", true) ? "always" : "never");
}
bool has_space_prefix(const Fields& metaspace) { return read_prepend_scheme(metaspace) != "never"; }

// Appends the steps of a part, which may be a Sequence, in order.
void append_steps(const Fields& part, std::string_view list, std::vector<Fields>& steps) {
  if (part.read_text("type", "") != "Sequence") return steps.push_back(part);
  for (const Fields& step : part.read_list(list)) append_steps(step, list, steps);
}

// Describes the steps of a decoder: their types, and the fields that change texts.
std::vector<std::string> describe_decoder(const Fields& pipeline) {
  std::vector<std::string> steps;
  for (const Fields& step : collect_steps(pipeline, "decoder", "decoders")) {
    std::string& text = steps.emplace_back(step.read_text("type", ""));
    if (text == "Replace") {
      text = describe_step(text, {find_pattern(step, "String").value_or(""), step.read_text("content", "")});
    } else if (text == "Strip") {
      text = describe_step(text, {step.read_text("content", " "), std::to_string(step.read_unsigned("start", 0)),
                                  std::to_string(step.read_unsigned("stop", 0))});
    } else if (text == "Metaspace") {
      text = describe_step(text, {step.read_text("replacement", kSpaceSymbol), has_space_prefix(step) ? "prefix" : ""});
    } else if (text == "WordPiece") {
      text = describe_step(text, {step.read_text("prefix", "##"), step.read_boolean("cleanup", true) ? "cleanup" : ""});
    }
  }
  return steps;
}

}  // namespace

std::vector<Fields> collect_steps(const Fields& pipeline, std::string_view key, std::string_view list) {
  std::vector<Fields> steps;
  if (const auto part = pipeline.find_map(key)) append_steps(*part, list, steps);
  return steps;
}

std::optional<std::string> find_pattern(const Fields& step, std::string_view kind) {
  const auto pattern = step.find_map("pattern");
  return pattern ? pattern->read_text(kind) : std::nullopt;
}

std::string describe_step(std::string_view type, const std::vector<std::string>& fields) {
  return fmt::format("{} \"{}\"", type, fmt::join(fields, "\" \""));
}

FormBuilder::FormBuilder(const Vocabulary& vocabulary_of, const std::string& general_name)
    : vocabulary(vocabulary_of), pipeline(vocabulary_of.pipeline, "") {
  gguf.general_name = general_name;
}

void FormBuilder::convert_tokens() {
  gguf.bos_token_id = make_optional_id(vocabulary.bos_id);
  gguf.eos_token_id = make_optional_id(vocabulary.eos_id);
  gguf.unknown_token_id = make_optional_id(vocabulary.unk_id);
  gguf.padding_token_id = make_optional_id(vocabulary.pad_id);
  gguf.chat_template = vocabulary.chat_template;
  gguf.tokenizer_config = vocabulary.tokenizer_config;
  gguf.files = vocabulary.files;
  gguf.tokens.reserve(vocabulary.size());
  gguf.scores.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    gguf.tokens.emplace_back(vocabulary.text(id));
    gguf.scores.push_back(vocabulary.score(id));
    gguf.token_type.push_back(find_token_type_number(vocabulary.type(id)));
  }
}

void FormBuilder::name_unused_tokens() {
  for (std::size_t id = 0; id < gguf.tokens.size(); ++id) {
    if (gguf.tokens[id].empty()) gguf.tokens[id] = fmt::format("[PAD{}]", id);
  }
}

void FormBuilder::convert_prefix(const Fields& metaspace) {
  const std::string scheme = read_prepend_scheme(metaspace);
  gguf.add_space_prefix = scheme != "never";
  prepend_first = *gguf.add_space_prefix;
  scheme == "first" ? report_space_in_runs() : report_second_space();
}

void FormBuilder::report_space_in_runs() {
  add_loss("llama.cpp puts a space in front of runs after added tokens, too");
  report_second_space();
}
void FormBuilder::report_second_space() {
  if (gguf.add_space_prefix.value_or(true) && !gguf.remove_extra_whitespaces.value_or(false))
    add_loss("llama.cpp puts a space in front of texts that begin with one, too");
}

void FormBuilder::convert_special_tokens() {
  const SpecialAround around = find_special_around(vocabulary);
  const auto convert_around = [&](const std::vector<TokenId>& tokens, std::optional<std::int32_t>& id,
                                  std::optional<bool>& flag, std::string_view where) {
    flag = !tokens.empty();
    if (tokens.empty()) return;
    if (!id) id = tokens.front();
    if (tokens.size() == 1 && *id == tokens.front()) return;
    flag = false;
    add_loss(fmt::format("gguf does not hold the special tokens {} texts: {}", where, fmt::join(tokens, ", ")));
  };
  convert_around(around.before, gguf.bos_token_id, gguf.add_bos_token, "in front of");
  convert_around(around.after, gguf.eos_token_id, gguf.add_eos_token, "after");
}

void FormBuilder::report_spaces() {
  const NormalizerRules rules = read_normalizer_rules(vocabulary);
  if (!rules.escape_whitespaces)
    add_loss("gguf does not record that tokens have spaces instead of U+2581: texts get other tokens");
  if (rules.treat_whitespace_as_suffix)
    add_loss("gguf does not record that a space is added after a text, not before it: texts get other tokens");
  if (rules.prepend_first && rules.add_dummy_prefix) report_space_in_runs();
  if (read_denormalizer_rules(vocabulary)) add_loss("gguf does not hold the vocabulary's denormalizer");
}

void FormBuilder::report_decoder(const std::vector<std::string>& same) {
  if (describe_decoder(pipeline) == same) return;
  const auto decoder = pipeline.find_map("decoder");
  add_lost_step(fmt::format("{}: tokens may become another text",
                            decoder ? "the decoder " + decoder->read_text("type", "") : "the absence of a decoder"));
}

void FormBuilder::report_added_tokens() {
  const auto is_found = [&](std::size_t id) {
    return is_found_in_prompts(find_token_type(static_cast<std::uint64_t>(gguf.token_type[id])));
  };
  const bool normalizes = vocabulary.kind == VocabularyKind::pipeline && pipeline.find_map("normalizer");
  std::vector<bool> is_listed(vocabulary.size());
  std::vector<std::string_view> more;
  std::vector<std::string_view> fewer;
  std::size_t others = 0;
  const std::vector<AddedToken> added = read_added_tokens(pipeline, vocabulary.size());
  for (const AddedToken& token : added) {
    if (token.content.empty()) continue;
    const auto id = static_cast<std::size_t>(token.id);
    is_listed[id] = true;
    if (!is_found(id) || token.content != vocabulary.text(id)) {
      fewer.push_back(token.content);
    } else if (token.lstrip || token.single_word || (token.normalized && normalizes) ||
               token.rstrip != consumes_space_in_gguf(token.content, gguf.general_name)) {
      ++others;
    }
  }
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (!is_listed[id] && is_found(id) && !vocabulary.text(id).empty()) more.push_back(vocabulary.text(id));
  }
  if (!more.empty()) {
    add_loss(
        fmt::format("llama.cpp finds the texts of {} special tokens in a prompt, which the vocabulary does not: {}",
                    more.size(), list_names(more)));
  }
  if (!fewer.empty())
    add_loss(fmt::format("llama.cpp does not find the texts of {} added tokens in a prompt: {}", fewer.size(),
                         list_names(fewer)));
  if (others > 0)
    add_loss(
        fmt::format("gguf does not record how {} added tokens match (white space next to them, whole words, "
                    "normalized text): some texts get other tokens",
                    others));
}

}  // namespace poise::gguf_forms

namespace poise {

std::vector<std::size_t> rename_repeated_tokens(std::vector<std::string>& tokens, EmptyTokens empty) {
  std::unordered_set<std::string_view> texts;
  texts.reserve(tokens.size());
  std::vector<std::size_t> repeated;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const bool is_kept = empty == EmptyTokens::keep_all && tokens[id].empty();
    if (!is_kept && !texts.insert(tokens[id]).second) repeated.push_back(id);
  }
  for (const std::size_t id : repeated) {
    std::string name = fmt::format("[PAD{}]", id);
    while (texts.contains(name)) name.insert(name.begin(), '[');
    tokens[id] = std::move(name);
    texts.insert(tokens[id]);
  }
  return repeated;
}

std::string describe_repeated_tokens(std::string_view format, const std::vector<std::size_t>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const std::size_t id : ids) names.push_back(std::to_string(id));
  return fmt::format("{} holds each text of a token once: {} {}, which {} the text of an earlier token, {}", format,
                     ids.size() == 1 ? "token" : "tokens", list_names(names), ids.size() == 1 ? "has" : "have",
                     ids.size() == 1 ? "becomes an unused token" : "become unused tokens");
}

}  // namespace poise
