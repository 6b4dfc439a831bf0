// Attention of the query heads of some tokens over cached positions.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/product.hpp"
#include "runtime/kv_cache.hpp"

namespace poise {

// Describes the heads of a layer. Consecutive query heads share one head of keys and values.
struct AttentionHeads {
  std::size_t count = 0;     // of queries; a rank may have none
  std::size_t kv_count = 0;  // of keys and values; divides count
  std::size_t size = 0;
  std::size_t window = 0;        // how many positions a token sees, its own included; 0: all up to its own
  float scale = 0;               // of the scores; 0: 1 / sqrt(size)
  float cap = 0;                 // scores become cap * tanh(score / cap); 0: unchanged
  const float* sinks = nullptr;  // a score for each query head that takes its share without a value; null: none
};

// Names a token: the cache of its sequence, with its keys and values.
struct AttentionToken {
  const KvCache* cache = nullptr;
  std::size_t position = 0;
};

// Computes out[t, h] = softmax(queries[t, h] . keys * scale) values; queries and out [tokens, heads.count, heads.size].
// Each result is the same to the bit for any other tokens and heads, and any number of threads; but many tokens of a
// sequence are summed in another order than KernelInput::kFewTokensWithTiles, on a matrix unit. Requires: tokens of a
// sequence have consecutive positions.
void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads, Precision precision,
            const float* queries, float* out);

// Attention of many tokens of a sequence on a matrix unit (kernels/tiles.hpp): queries, keys, values and weights are
// sums of two bfloat16 numbers, so that a product is within 2^-15.

// Names consecutive tokens of a sequence and query heads that share a head of keys and values: they read each block of
// it once.
struct AttentionTask {
  std::span<const AttentionToken> tokens;
  std::size_t layer;
  std::size_t kv_head;
  std::size_t head;   // the first query head
  std::size_t count;  // of query heads
};

// Returns the positions that a token sees.
IndexRange find_visible_positions(const AttentionToken& token, std::size_t window);

// Turns a row's scores into weights, in place. If there is a sink, its weight follows the others.
void weigh(float* scores, std::size_t count, const AttentionHeads& heads, std::size_t head);

// Returns true if attend_on_tiles() takes heads of this size, since they are whole tiles.
bool can_use_tiles(std::size_t size);

// Attends for one task. `queries` and `out` begin with the first token's first head. Returns false, without computing,
// if a key or value is not finite: one that a token does not see would spoil its sums. Results are the same to the bit
// for any tokens and heads of a task. Requires: can_use_tiles(heads.size), and a matrix unit.
bool attend_on_tiles(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                     float* out);

}  // namespace poise
