// Merges that follow from scores: two tokens merge if their concatenation is a token, the highest score first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/function_ref.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

// In bytes. Longer tokens are never made by merges: finding their parts takes quadratic time.
inline constexpr std::size_t kLongestMergedToken = 4096;

struct ScoreMerge {
  TokenId left;
  TokenId right;
  TokenId merged;
  std::uint32_t rank;  // equal for equal scores
};

// By token: how many of the scores in `ids` are better; UINT32_MAX for other tokens and scores of NaN.
std::vector<std::uint32_t> merge_ranks(const Vocabulary& vocabulary, const TokenIndex& ids);

// All pairs of tokens that make a token, by rank. `ids`: the tokens that count.
void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids,
                          FunctionRef<void(const ScoreMerge&)> visit);

// The same as a list of left and right texts. Among the pairs for one token, those with the longer left part come
// first: a list has no equal ranks.
std::vector<std::pair<std::string_view, std::string_view>> listed_score_merges(const Vocabulary& vocabulary,
                                                                               const TokenIndex& ids);

}  // namespace poise
