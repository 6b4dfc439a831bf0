// Attention of the query heads of some tokens over cached positions.
#pragma once

#include <cstddef>

#include "runtime/kv_cache.hpp"

namespace poise {

// Heads of a layer. Consecutive query heads share one of keys and values.
struct AttentionHeads {
  std::size_t count = 0;     // of queries
  std::size_t kv_count = 0;  // of keys and values; divides count
  std::size_t size = 0;
  std::size_t window = 0;        // positions that a token sees, itself among them; 0: all before it
  float scale = 0;               // of the scores; 0: 1 / sqrt(size)
  float cap = 0;                 // scores become cap * tanh(score / cap); 0: they stay
  const float* sinks = nullptr;  // a score for each query head that takes its part and has no value; null: none
};

// out[t, h] = softmax(queries[t, h] . keys * scale) values for tokens from `position` on, whose keys and values are in
// the cache; queries and out [tokens, heads.count, heads.size]. Each result is the same to the bit whatever other
// tokens and heads come with it.
void attend(const KvCache& cache, std::size_t layer, const AttentionHeads& heads, std::size_t position,
            std::size_t tokens, const float* queries, float* out);

}  // namespace poise
