// Merges that follow from scores: two tokens merge whose texts together are a token's, the one of the highest score
// first.
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

// In bytes. A longer token is made of no others: to look for its parts takes the square of its length.
inline constexpr std::size_t kLongestMergedToken = 4096;

struct ScoreMerge {
  TokenId left;
  TokenId right;
  TokenId merged;
  std::uint32_t rank;  // tokens of one score have one
};

// By token: how many scores of those that count are better; UINT32_MAX for tokens that are none of these, or whose
// score is NaN.
std::vector<std::uint32_t> merge_ranks(const Vocabulary& vocabulary, const TokenIndex& ids);

// All ways to make a token of two others, by rank. `ids`: the tokens that count.
void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids,
                          FunctionRef<void(const ScoreMerge&)> visit);

// The same as a list, left and right text. Of the ways to make one token those with the longer left one come first: a
// list has no equal ranks.
std::vector<std::pair<std::string_view, std::string_view>> listed_score_merges(const Vocabulary& vocabulary,
                                                                               const TokenIndex& ids);

}  // namespace poise
