// Attention of many tokens of a sequence on a matrix unit (kernels/tiles.hpp): queries, keys, values and weights are
// sums of two bfloat16 numbers, so that a product is within 2^-15.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/attention.hpp"

namespace poise {

// Consecutive tokens of a sequence and query heads that share a head of keys and values: they read each block of it
// once.
struct AttentionTask {
  std::span<const AttentionToken> tokens;
  std::size_t layer;
  std::size_t kv_head;
  std::size_t head;   // the first query head
  std::size_t count;  // of query heads
};

// The positions that a token sees.
IndexRange seen_by(const AttentionToken& token, std::size_t window);

// In place: a row's scores become weights, and its sink's, if any, follows them.
void weigh(float* scores, std::size_t count, const AttentionHeads& heads, std::size_t head);

// Whether attend_on_tiles() takes heads of this size: they are whole tiles.
bool takes_tiles(std::size_t size);

// Queries and out begin with the first token's first head. Returns false, with nothing computed, if a key or value is
// not finite: what a token does not see would spoil its sums. Results are the same to the bit for any tokens and heads
// of a task. Requires: takes_tiles(heads.size), and a matrix unit.
bool attend_on_tiles(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                     float* out);

}  // namespace poise
