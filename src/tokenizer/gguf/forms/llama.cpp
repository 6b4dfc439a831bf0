// SentencePiece's BPE, and BPE of tokenizer.json with bytes as <0x00>: GGUF's "llama".
#include "tokenizer/gguf/forms/forming.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/score_merges.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf_forms {
namespace {

bool is_added(const Forming& of, TokenId id) {
  const TokenType type = of.vocabulary.type(static_cast<std::size_t>(id));
  return type == TokenType::control || type == TokenType::user_defined;
}

// Scores a token by the rank of the first merge that makes it; other ways to make it merge, too.
void rank_by_merges(Forming& of) {
  const TokenIndex ids(of.vocabulary, {});
  constexpr float kNever = -1e9F;
  std::ranges::fill(of.gguf.scores, kNever);
  std::unordered_set<std::uint64_t> pairs;
  pairs.reserve(of.vocabulary.merges.size());
  std::int32_t last = -1;
  bool in_order = true;
  for (std::size_t rank = 0; rank < of.vocabulary.merges.size(); ++rank) {
    const auto [left, right] = of.vocabulary.merges[rank];
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto merged = ids.find(of.vocabulary.merges.joined(rank));
    if (!left_id || !right_id || !merged) continue;
    pairs.insert(static_cast<std::uint64_t>(*left_id) << 32 | static_cast<std::uint32_t>(*right_id));
    float& score = of.gguf.scores[static_cast<std::size_t>(*merged)];
    if (score == kNever) {
      score = -static_cast<float>(rank);
    } else if (*merged != last && !is_added(of, *merged)) {
      in_order = false;
    }
    last = *merged;
  }
  std::size_t more = 0;
  for_each_score_merge(of.vocabulary, ids, [&](const ScoreMerge& merge) {
    const bool found_whole = is_added(of, merge.merged);
    if (!found_whole &&
        !pairs.contains(static_cast<std::uint64_t>(merge.left) << 32 | static_cast<std::uint32_t>(merge.right)))
      ++more;
  });
  if (more > 0 || !in_order) {
    of.lose(
        fmt::format("llama.cpp merges whatever makes a token, the vocabulary only what it lists ({} ways more{}): some "
                    "words get other tokens",
                    more, in_order ? "" : ", and others in another order"));
  }
}

// Returns whether U+2581 replaces spaces, and notes what else the steps do.
bool escapes_spaces(Forming& of, const std::vector<Fields>& cuts) {
  bool escaped = false;
  bool prefix = false;
  for (const Fields& step : steps_of(of.pipeline, "normalizer", "normalizers")) {
    const std::string type = step.text("type", "");
    if (type == "Prepend" && step.text("prepend", "") == kSpaceSymbol) {
      prefix = true;
    } else if (type == "Replace" && pattern_of(step, "String") == " " && step.text("content", "") == kSpaceSymbol) {
      escaped = true;
    } else {
      of.lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", type));
    }
  }
  for (const Fields& step : cuts) {
    const std::string type = step.text("type", "");
    if (type == "Metaspace") {
      escaped = true;
      of.take_prefix(step);
      prefix = *of.gguf.add_space_prefix;
    } else if (type != "Split" || pattern_of(step, "String") != " " ||
               !escaped) {  // after the replacement there is no space to cut at
      of.lose(fmt::format("gguf does not hold the pre-tokenizer {}: words may get other tokens", type));
    }
  }
  of.gguf.add_space_prefix = prefix;
  std::vector<std::string> same = {replace_step(kSpaceSymbol, " "), "ByteFallback", "Fuse"};
  if (prefix) same.push_back(strip_step(" ", 1, 0));
  if (escaped) of.check_decoder(same);
  return escaped;
}

}  // namespace

// SentencePiece merges by scores, in any way that makes a token.
std::string form_llama(Forming& of, const Fields& model, const std::vector<Fields>& cuts) {
  of.gguf.model = "llama";
  of.gguf.pre = "default";
  if (!model.boolean("byte_fallback", false) || !escapes_spaces(of, cuts)) {
    return "whose steps are neither those of byte-level BPE nor those of SentencePiece";
  }
  if (of.vocabulary.unk_id >= 0)
    of.gguf.token_type[static_cast<std::size_t>(of.vocabulary.unk_id)] = token_type_number(TokenType::unknown);
  if (model.boolean("merge_by_score", false)) return {};
  rank_by_merges(of);
  return {};
}

std::string form_sentencepiece_bpe(Forming& of) {
  of.gguf.model = "llama";
  of.gguf.pre = "default";
  of.take_tokens();
  of.gguf.add_space_prefix = of.vocabulary.add_dummy_prefix;
  if (of.vocabulary.remove_extra_whitespaces) {
    of.gguf.remove_extra_whitespaces = true;
    of.lose("llama.cpp does not remove extra white space where tokens merge by scores: texts with it get other tokens");
  }
  of.take_special_tokens();
  if (of.vocabulary.normalizer != Vocabulary().normalizer)
    of.lose(fmt::format("gguf does not hold the vocabulary's normalizer {}", of.vocabulary.normalizer));
  of.check_spaces();
  of.check_added_tokens();
  return {};
}

}  // namespace poise::gguf_forms
