// Computes attention: the query heads of some tokens attend to cached positions.
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

// Names a token: its position, and the cache of its sequence. The cache has the token's key and value.
struct AttentionToken {
  const KvCache* cache = nullptr;
  std::size_t position = 0;
};

// Computes out[t, h] = softmax(queries[t, h] . keys * scale) values. queries and out are [tokens, heads.count,
// heads.size]. The bits of a result do not depend on the other tokens and heads, nor on the number of threads.
// Precision::fast has two exceptions, both for many tokens of a sequence. A matrix unit sums more than
// KernelInput::kFewTokensWithTiles of them in another order. AVX-512 VNNI rounds queries, keys, values and weights to
// integers of 12.5 bits and a sign (attend_on_panels()), unless the cache has float32. A result then still does not
// depend on which other tokens are computed with its token, only on whether they are many. If a number in the cache is
// not finite, tokens near it are computed in float32; the number of threads decides which. Requires: tokens of a
// sequence have consecutive positions.
void attend(std::span<const AttentionToken> tokens, std::size_t layer, const AttentionHeads& heads, Precision precision,
            const float* queries, float* out);

// attention.cpp, tiled_attention.cpp and panel_attention.cpp share the declarations below.

// Names consecutive tokens of a sequence, and query heads that share a head of keys and values. The task reads each
// block of that head from memory once.
struct AttentionTask {
  std::span<const AttentionToken> tokens;
  std::size_t layer;
  std::size_t kv_head;
  std::size_t head;   // the first query head
  std::size_t count;  // the number of query heads
};

// Returns the last `window` positions up to the token's own; window 0: all of them.
IndexRange find_visible_positions(const AttentionToken& token, std::size_t window);

// Replaces the scores of a row with weights. If the heads have sinks, the weight of the head's sink follows the others.
void compute_attention_weights(float* scores, std::size_t count, const AttentionHeads& heads, std::size_t head);

// Finds the rows of a task, and the positions that they see. A row is a token with a query head; the rows of a token
// follow each other. Positions are counted from the beginning of the first block that the task sees. Requires: task and
// heads outlive this.
class TaskRows {
 public:
  TaskRows(const AttentionTask& task, const AttentionHeads& heads);

  std::size_t count() const { return task_.tokens.size() * task_.count; }
  // Returns the number of positions of all blocks that the task sees, with the slots after its last position.
  std::size_t positions() const { return positions_; }
  std::size_t find_token(std::size_t row) const { return row / task_.count; }
  // Returns the place of a row in queries and results.
  std::size_t find_place(std::size_t row) const {
    return (find_token(row) * heads_.count + row % task_.count) * heads_.size;
  }
  // Returns the first row of the next token.
  std::size_t find_next_token(std::size_t row) const { return (find_token(row) + 1) * task_.count; }
  // Returns the positions that a row sees.
  IndexRange find_seen(std::size_t row) const;
  // Returns the blocks that at least one of the rows sees.
  IndexRange find_seen_blocks(const IndexRange& rows) const;

  const KvCache& cache() const { return *task_.tokens.front().cache; }
  CachedRun find_run(Cached what, const IndexRange& positions) const;
  // Decodes keys or values of the block at a position. Sets slots after the last position to 0: they have zeros or
  // older numbers. Returns true if the others are finite.
  bool decode_block(Cached what, std::size_t position, float* out) const;

  // Computes the weights of a row from its scores at the positions of some blocks, in place: applies `scale`, and
  // returns 1 / sum, the factor with which the weights add up to 1. Positions that the row does not see get 0.
  float compute_weights(std::size_t row, const IndexRange& blocks, float scale, float* scores) const;

 private:
  const AttentionTask& task_;
  const AttentionHeads& heads_;
  std::size_t begin_;  // the position in the sequence from which others are counted
  std::size_t end_;    // the last position in the sequence, plus 1
  std::size_t positions_;
};

// Returns true if heads of this size are whole tiles, as attend_on_tiles() requires.
bool can_use_tiles(std::size_t size);

// Computes one task on a matrix unit (kernels/tiles.hpp). Queries, keys, values and weights are sums of two bfloat16
// numbers, so that the error of a product is at most 2^-15 of it. `queries` and `out` begin at the task's first token
// and head. Returns false, without computing, if a key or value is not finite: the product of such a number and the
// weight 0 of a token that does not see it would be NaN. The bits of a result do not depend on the task's other tokens
// and heads. Requires: can_use_tiles(heads.size), and a matrix unit.
bool attend_on_tiles(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                     float* out);

// Returns true if this processor can multiply heads of this size as panels, as attend_on_panels() requires.
bool can_use_panels(std::size_t size);

// Computes one task with AVX-512 VNNI. Rounds numbers to integers: the largest of those that share a scale becomes
// kLargestRounded. A scale belongs to at most 64 neighbouring numbers of a query or key, to a row's weights for a block
// of positions, or to the same number of all values in a block. An error is at most 1/11584 of the largest of them.
// Positions with a large share of a row's weights are computed in float32. Returns false, without computing, if a key
// or value is not finite, as attend_on_tiles() does. Magnitudes below 1e-30 count as 0. Requires:
// can_use_panels(heads.size).
bool attend_on_panels(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                      float* out);

}  // namespace poise
