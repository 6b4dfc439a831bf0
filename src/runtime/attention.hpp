// Computes the attention of the query heads of some tokens over cached positions.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/product.hpp"
#include "runtime/kv_cache.hpp"

namespace poise {

// Describes the heads of a layer. Consecutive query heads share one head of keys and values.
struct AttentionHeads {
  std::size_t count = 0;     // query heads; a rank may have none
  std::size_t kv_count = 0;  // heads of keys and values; divides `count`
  std::size_t size = 0;
  std::size_t window = 0;        // how many positions a token sees, including its own; 0: all up to its own
  float scale = 0;               // the factor of scores; 0: 1 / sqrt(size)
  float cap = 0;                 // scores become cap * tanh(score / cap); 0: unchanged
  const float* sinks = nullptr;  // a score of each query head that counts in the softmax but has no value; may be null
};

// Names a token by its position and the cache of its sequence, which has the token's key and value.
struct AttentionToken {
  const KvCache* cache = nullptr;
  std::size_t position = 0;
};

// Computes out[t, h] = softmax(queries[t, h] . keys * scale) values. queries and out are [tokens, heads.count,
// heads.size]. A result has the same bits whatever other tokens and heads are computed, and for any number of threads.
// On a matrix unit, however, more than KernelInput::kFewTokensWithTiles tokens of a sequence are summed in another
// order. Requires: tokens of a sequence have consecutive positions.
void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads, Precision precision,
            const float* queries, float* out);

// These functions compute the attention of many tokens of a sequence on a matrix unit (kernels/tiles.hpp). Queries,
// keys, values and weights are sums of two bfloat16 numbers, so that the error of a product is at most 2^-15 of it.

// Names consecutive tokens of a sequence, and query heads that share a head of keys and values: together they read each
// of its blocks once.
struct AttentionTask {
  std::span<const AttentionToken> tokens;
  std::size_t layer;
  std::size_t kv_head;
  std::size_t head;   // the first query head
  std::size_t count;  // the number of query heads
};

// Returns the positions that a token sees.
IndexRange find_visible_positions(const AttentionToken& token, std::size_t window);

// Computes the weights from the scores of a row, in place. If there is a sink, its weight follows the others.
void weigh(float* scores, std::size_t count, const AttentionHeads& heads, std::size_t head);

// Returns true if attend_on_tiles() supports this size of heads: they are whole tiles.
bool can_use_tiles(std::size_t size);

// Computes the attention of one task. `queries` and `out` begin with the first token's first head. Returns false,
// without computing, if a key or value is not finite, because even one that a token does not see would make its sums
// NaN. Results have the same bits for any other tokens and heads of the task. Requires: can_use_tiles(heads.size), and
// a matrix unit.
bool attend_on_tiles(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                     float* out);

}  // namespace poise
