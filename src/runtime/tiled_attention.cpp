#include "runtime/attention.hpp"

#include <algorithm>
#include <array>

#include "kernels/aligned_vector.hpp"
#include "kernels/cache_type.hpp"
#include "kernels/product_kernels.hpp"
#include "kernels/tile_layout.hpp"
#include "kernels/tiles.hpp"

namespace poise {
namespace {

constexpr std::size_t kParts = 2;
static_assert(kBlockPositions % (2 * kTileTokens) == 0 && kBlockPositions % kTileColumns == 0);

// Refers to numbers that are sums of two bfloat16 parts. The second part of a number is `apart` elements after its
// first part.
struct Parts {
  std::uint16_t* data;
  std::size_t apart;

  Parts move_by(std::size_t place) const { return {data + place, apart}; }
  TileParts at(std::size_t place) const { return {data + place, data + apart + place, nullptr}; }
};

// Splits two rows of numbers into parts, and interleaves the rows. The i-th group of kTileTokens numbers of both goes
// to out.move_by(i * step).
void store_pairs(const float* first, const float* second, std::size_t count, const Parts& out, std::size_t step) {
  alignas(64) std::uint16_t parts[2][kParts][kBlockPositions];
  for (std::size_t from = 0; from < count; from += kBlockPositions) {
    const std::size_t numbers = std::min(kBlockPositions, count - from);
    split_floats(first + from, numbers, std::array<std::uint16_t*, kParts>{parts[0][0], parts[0][1]});
    split_floats(second + from, numbers, std::array<std::uint16_t*, kParts>{parts[1][0], parts[1][1]});
    for (std::size_t p = 0; p < kParts; ++p)
      store_tile_pairs(parts[0][p], parts[1][p], numbers, out.data + p * out.apart + from / kTileTokens * step, step);
  }
}

// Computes attention with queries, keys, values and weights as tiles. A thread has one object, and reuses its memory.
class TiledAttention {
 public:
  static TiledAttention& get_thread_instance() {
    thread_local TiledAttention attention;
    return attention;
  }

  bool attend(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries, float* out) {
    const TaskRows rows(task, heads);
    size_ = heads.size;
    positions_ = rows.positions();
    if (!load_keys_and_values(rows)) return false;
    const TileScope scope;
    for (std::size_t row = 0; row < rows.count(); row += kTileRows)
      attend_rows(rows, {row, std::min(rows.count(), row + kTileRows)}, scale, queries, out);
    return true;
  }

 private:
  // get_keys() returns the tiles with the keys of kTileTokens positions, [size / 2, kTileTokens, 2] for each part.
  // get_values() returns the tiles with kTileTokens numbers of each value, [positions / 2, kTileTokens, 2] for each
  // part. Requires: the position or number is a multiple of kTileTokens.
  Parts get_keys(std::size_t position) {
    const std::size_t numbers = size_ * kTileTokens;
    return {keys_.data() + position / kTileTokens * kParts * numbers, numbers};
  }
  Parts get_values(std::size_t number) {
    const std::size_t numbers = positions_ * kTileTokens;
    return {values_.data() + number / kTileTokens * kParts * numbers, numbers};
  }

  // Loads keys and values as tiles. Returns false if one is not finite. Slots without a position have zeros or older
  // numbers; their weights are 0.
  bool load_keys_and_values(const TaskRows& rows) {
    keys_.resize(std::max(keys_.size(), positions_ * size_ * kParts));
    values_.resize(std::max(values_.size(), positions_ * size_ * kParts));
    numbers_.resize(std::max(numbers_.size(), kBlockPositions * size_));
    for (std::size_t at = 0; at < positions_; at += kBlockPositions) {
      if (!rows.decode_block(Cached::keys, at, numbers_.data())) return false;
      for (std::size_t i = 0; i < size_; i += 2) {
        const float* const row = numbers_.data() + i * kBlockPositions;
        store_pairs(row, row + kBlockPositions, kBlockPositions, get_keys(at).move_by(i * kTileTokens),
                    kParts * size_ * kTileTokens);
      }
      if (!rows.decode_block(Cached::values, at, numbers_.data())) return false;
      for (std::size_t i = 0; i < kBlockPositions; i += 2) {
        const float* const row = numbers_.data() + i * size_;
        store_pairs(row, row + size_, size_, get_values(0).move_by((at + i) * kTileTokens),
                    kParts * positions_ * kTileTokens);
      }
    }
    return true;
  }

  void attend_rows(const TaskRows& task, const IndexRange& rows, float scale, const float* queries, float* out) {
    const IndexRange blocks = task.find_seen_blocks(rows);
    const Parts of_queries = reserve_rows(query_parts_, size_);
    for (std::size_t row = rows.first; row < rows.last; ++row)
      split_row(queries + task.find_place(row), size_, row - rows.first, of_queries);
    const std::size_t columns = blocks.size();
    const std::size_t stride =
        columns + kTileTokens;  // not a power of two, so that rows do not compete for the same lines of the cache
    scores_.resize(std::max(scores_.size(), kTileRows * stride));
    multiply_tiles({.weights = of_queries.at(0),
                    .stride = find_tile_row_stride(size_),
                    .x = get_keys(blocks.first).at(0),
                    .groups = columns / kTileTokens,
                    .step = kParts * size_ * kTileTokens,
                    .columns = size_,
                    .is_first = true,
                    .row_step = stride,
                    .group_step = kTileTokens},
                   scores_.data());

    const Parts of_weights = reserve_rows(weight_parts_, columns);
    std::array<float, kTileRows> factors;
    for (std::size_t row = rows.first; row < rows.last; ++row) {
      float* const scores = scores_.data() + (row - rows.first) * stride;
      factors[row - rows.first] = task.compute_weights(row, blocks, scale, scores);
      split_row(scores, columns, row - rows.first, of_weights);
    }
    for (std::size_t number = 0; number < size_; number += 2 * kTileTokens) {
      const TileBlock block = {.weights = of_weights.at(0),
                               .stride = find_tile_row_stride(columns),
                               .x = get_values(number).at(blocks.first * kTileTokens),
                               .groups = 2,
                               .step = kParts * positions_ * kTileTokens,
                               .columns = columns,
                               .is_first = true};
      multiply_tiles(block, sums_);
      for (std::size_t row = rows.first; row < rows.last; ++row) {
        for (std::size_t g = 0; g < 2; ++g) {
          const float* const from = sums_ + g * kTileSums + (row - rows.first) * kTileTokens;
          float* const to = out + task.find_place(row) + number + g * kTileTokens;
          for (std::size_t i = 0; i < kTileTokens; ++i) to[i] = from[i] * factors[row - rows.first];
        }
      }
    }
  }

  static Parts reserve_rows(AlignedVector<std::uint16_t>& memory, std::size_t columns) {
    const std::size_t apart = kTileRows * find_tile_row_stride(columns);
    memory.resize(std::max(memory.size(), kParts * apart));
    return {memory.data(), apart};
  }
  static void split_row(const float* numbers, std::size_t columns, std::size_t row, const Parts& out) {
    std::uint16_t* const to = out.data + row * find_tile_row_stride(columns);
    split_floats(numbers, columns, std::array<std::uint16_t*, kParts>{to, to + out.apart});
  }

  std::size_t positions_ = 0;  // whole blocks
  std::size_t size_ = 0;
  AlignedVector<std::uint16_t> keys_;
  AlignedVector<std::uint16_t> values_;
  AlignedVector<std::uint16_t> query_parts_;   // [parts, kTileRows, find_tile_row_stride()]
  AlignedVector<std::uint16_t> weight_parts_;  // [parts, kTileRows, find_tile_row_stride()], too
  AlignedVector<float> numbers_;
  AlignedVector<float> scores_;
  alignas(64) float sums_[2 * kTileSums];
};

}  // namespace

bool can_use_tiles(std::size_t size) { return size % kTileColumns == 0; }

bool attend_on_tiles(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                     float* out) {
  return TiledAttention::get_thread_instance().attend(task, heads, scale, queries, out);
}

}  // namespace poise
