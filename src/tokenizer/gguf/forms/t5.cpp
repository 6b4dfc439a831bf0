// Unigram of SentencePiece and tokenizer.json: GGUF's "t5".
#include "tokenizer/gguf/forms/forming.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/base64.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf_forms {
namespace {

// Reports where llama.cpp differs from SentencePiece.
void check_unigram(Forming& of) {
  const auto has = [&](TokenType type) {
    return std::ranges::find(of.gguf.token_type, token_type_number(type)) != of.gguf.token_type.end();
  };
  if (has(TokenType::byte))
    of.lose(
        "llama.cpp takes no bytes for characters without a token in such a vocabulary: they become the unknown token");
  if (has(TokenType::unused))
    of.lose("llama.cpp takes the unused tokens of such a vocabulary, too: some words get other tokens");
  if (of.gguf.remove_extra_whitespaces.value_or(false) && !of.gguf.add_space_prefix.value_or(true)) {
    of.lose("llama.cpp puts a space in front of texts where it removes extra white space");
  }
}

}  // namespace

std::string form_sentencepiece_unigram(Forming& of) {
  of.gguf.model = "t5";
  of.gguf.pre = "default";
  of.take_tokens();
  of.gguf.add_space_prefix = of.vocabulary.add_dummy_prefix;
  of.gguf.remove_extra_whitespaces = of.vocabulary.remove_extra_whitespaces;
  of.gguf.precompiled_charsmap = normalizer_of(of.vocabulary).charsmap;
  of.check_spaces();
  of.take_special_tokens();
  if (of.gguf.precompiled_charsmap.empty() && of.vocabulary.normalizer != Vocabulary().normalizer) {
    of.lose(fmt::format("gguf does not hold the vocabulary's normalizer {}", of.vocabulary.normalizer));
  }
  check_unigram(of);
  of.check_added_tokens();
  return {};
}

// Unigram of tokenizer.json, with the steps that llama.cpp has.
std::string form_unigram(Forming& of) {
  const Fields model = *of.pipeline.map("model");
  if (model.find("unk_id") == nullptr) return "of the model Unigram without an unknown token";
  of.take_tokens();
  of.name_unused_tokens();
  of.gguf.model = "t5";
  of.gguf.pre = "default";
  of.gguf.add_space_prefix = false;
  of.gguf.remove_extra_whitespaces = false;
  of.gguf.unknown_token_id =
      static_cast<std::int32_t>(std::min<std::uint64_t>(model.number("unk_id", 0), of.vocabulary.size()));
  if (static_cast<std::size_t>(*of.gguf.unknown_token_id) >= of.vocabulary.size())
    model.fail("unk_id", "is the id of no token");
  of.gguf.token_type[static_cast<std::size_t>(*of.gguf.unknown_token_id)] = token_type_number(TokenType::unknown);
  bool stripped = false;
  for (const Fields& step : steps_of(of.pipeline, "normalizer", "normalizers")) {
    const std::string type = step.text("type", "");
    if (type == "Precompiled" && of.gguf.precompiled_charsmap.empty()) {
      if (const auto rules = base64_decoded(step.required_text("precompiled_charsmap")))
        of.gguf.precompiled_charsmap = *rules;
    } else if (type == "Strip" && step.boolean("strip_left", true) && step.boolean("strip_right", true)) {
      stripped = true;
    } else if (type == "Replace" && pattern_of(step, "Regex") == " {2,}") {
      of.gguf.remove_extra_whitespaces = true;
    } else {
      of.lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", type));
    }
  }
  bool escaped = false;
  for (const Fields& step : steps_of(of.pipeline, "pre_tokenizer", "pretokenizers")) {
    const std::string type = step.text("type", "");
    if (type == "Metaspace" && step.text("replacement", kSpaceSymbol) == kSpaceSymbol) {
      escaped = true;
      of.take_prefix(step);
    } else if (type == "WhitespaceSplit") {
      of.gguf.remove_extra_whitespaces = stripped = true;
    } else {
      of.lose(fmt::format("gguf does not hold the pre-tokenizer {}: words may get other tokens", type));
    }
  }
  if (!escaped) return "of the model Unigram whose steps are not SentencePiece's";
  if (stripped != *of.gguf.remove_extra_whitespaces)
    of.lose(
        "llama.cpp removes white space at the ends of texts and inside them, or neither: some texts get other tokens");
  of.check_decoder({metaspace_step(kSpaceSymbol, *of.gguf.add_space_prefix)});
  if (model.find("scores") != nullptr) of.lose("gguf holds scores of 32 bits: those of the vocabulary are rounded");
  if (model.boolean("byte_fallback", false))
    of.lose(
        "llama.cpp takes no bytes for characters without a token in such a vocabulary: they become the unknown token");
  check_unigram(of);
  of.take_special_tokens();
  of.check_added_tokens();
  return {};
}

}  // namespace poise::gguf_forms
