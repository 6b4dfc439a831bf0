// Attention of the query heads of some tokens over cached positions.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/product.hpp"
#include "runtime/kv_cache.hpp"

namespace poise {

// Heads of a layer. Consecutive query heads share one of keys and values.
struct AttentionHeads {
  std::size_t count = 0;     // of queries
  std::size_t kv_count = 0;  // of keys and values; divides count
  std::size_t size = 0;
  std::size_t window = 0;        // how many positions a token sees, its own included; 0: all up to its own
  float scale = 0;               // of the scores; 0: 1 / sqrt(size)
  float cap = 0;                 // scores become cap * tanh(score / cap); 0: unchanged
  const float* sinks = nullptr;  // a score for each query head that takes its share without a value; null: none
};

// A token: the cache of its sequence, with its keys and values.
struct AttentionToken {
  const KvCache* cache = nullptr;
  std::size_t position = 0;
};

// out[t, h] = softmax(queries[t, h] . keys * scale) values; queries and out [tokens, heads.count, heads.size]. Each
// result is the same to the bit for any other tokens and heads, and any number of threads; but many tokens of a
// sequence are summed in another order than KernelInput::kFewTokensWithTiles, on a matrix unit. Requires: tokens of a
// sequence have consecutive positions.
void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads, Precision precision,
            const float* queries, float* out);

}  // namespace poise
