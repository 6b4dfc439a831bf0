// Attention of the query heads of some tokens over cached positions.
#pragma once

#include <cstddef>
#include <span>

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

// A token: where its keys and values are cached, with those of the tokens before it.
struct AttentionToken {
  const KvCache* cache = nullptr;
  std::size_t position = 0;
};

// out[t, h] = softmax(queries[t, h] . keys * scale) values; queries and out [tokens, heads.count, heads.size]. Each
// result is the same to the bit whatever other tokens and heads come with it.
void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads,
            const float* queries, float* out);

}  // namespace poise
