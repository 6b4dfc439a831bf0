// BERT's WordPiece, "bert". GGUF marks the tokens that begin a word, tokenizer.json the others.
#include "tokenizer/gguf/forms/forming.hpp"

#include <fmt/format.h>

#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"

namespace poise::gguf_forms {
namespace {

// llama.cpp puts BOS and the separator around texts of such a vocabulary, whatever the file contains.
void take_separator(Forming& of) {
  const SpecialAround around = special_around(of.vocabulary);
  if (around.after.size() == 1) of.gguf.seperator_token_id = around.after.front();
  if (around.before.size() == 1 && around.after.size() == 1) return;
  of.lose(
      "llama.cpp puts one token in front of texts and one after them in such a vocabulary, which the vocabulary does "
      "not");
}

}  // namespace

std::string form_word_piece(Forming& of) {
  const Fields model = *of.pipeline.map("model");
  const std::vector<Fields> cuts = steps_of(of.pipeline, "pre_tokenizer", "pretokenizers");
  const std::string prefix = model.text("continuing_subword_prefix", "##");
  const auto normalizer = of.pipeline.map("normalizer");
  const bool berts = normalizer && normalizer->text("type", "") == "BertNormalizer" && cuts.size() == 1 &&
                     cuts.front().text("type", "") == "BertPreTokenizer";
  if (prefix.empty() || !berts) return "of the model WordPiece whose steps are not BERT's";
  of.take_tokens();
  of.name_unused_tokens();
  of.gguf.model = "bert";
  of.gguf.pre = "default";
  of.gguf.scores.clear();
  const bool lowercase = normalizer->boolean("lowercase", true);
  if (!lowercase) of.gguf.lowercase = false;
  if (!normalizer->boolean("clean_text", true) || !normalizer->boolean("handle_chinese_chars", true) ||
      normalizer->boolean("strip_accents", lowercase) != lowercase) {
    of.lose(
        "llama.cpp cleans texts, cuts at Chinese characters, and strips accents where it makes letters lower case: "
        "some texts get other tokens");
  }
  for (std::size_t id = 0; id < of.gguf.tokens.size(); ++id) {
    std::string& token = of.gguf.tokens[id];
    if (of.vocabulary.type(id) == TokenType::control) continue;
    token.starts_with(prefix) ? token.erase(0, prefix.size()) : token.insert(0, kSpaceSymbol);
  }
  const TokenIndex ids = tokens_of_model(of.vocabulary);
  of.gguf.unknown_token_id = token_named(model, "unk_token", model.text("unk_token", "[UNK]"), {of.vocabulary, ids});
  constexpr std::uint64_t kLongestWord = 100;
  if (const std::uint64_t longest = model.number("max_input_chars_per_word", kLongestWord); longest != kLongestWord) {
    of.lose(fmt::format("gguf does not say that words of more than {} characters are unknown", longest));
  }
  of.check_decoder({word_piece_step(prefix, true)});
  of.take_special_tokens();
  take_separator(of);
  of.check_added_tokens();
  return {};
}

}  // namespace poise::gguf_forms
