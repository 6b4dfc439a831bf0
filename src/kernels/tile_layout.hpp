// How the x of several tokens is laid out for a matrix unit (tiles.hpp), and how a stored type's weights become tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/input_part.hpp"
#include "kernels/tiles.hpp"

namespace poise {

// Columns of a panel of weights, at most: as many as leave half of the first cache to x, which goes by.
inline constexpr std::size_t kTileBlock = 256;                 // bfloat16 numbers
inline constexpr std::size_t kTileCodeBlock = 2 * kTileBlock;  // codes

// The x of some tokens for the products with a matrix.
struct TileLayout {
  std::size_t columns = 0;
  std::size_t parts = 0;   // bfloat16 numbers in a number; 0: integers
  std::int32_t taken = 0;  // with integers: what is taken off each code

  bool operator==(const TileLayout&) const = default;

  std::size_t block() const { return parts == 0 ? kTileCodeBlock : kTileBlock; }
  std::size_t blocks() const { return (columns + block() - 1) / block(); }
  // Of a block, padded with zeros to whole tiles.
  std::size_t columns_of(std::size_t b) const {
    const std::size_t whole = parts == 0 ? kTileBytes : kTileColumns;
    return std::min(block(), (columns - b * block() + whole - 1) / whole * whole);
  }
  static std::size_t groups(std::size_t tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

  // Returns how many bytes the numbers of kTileTokens tokens in a block take: parts [parts, columns / 2, kTileTokens,
  // 2], or integers [2, columns / 4, kTileTokens, 4], the upper bytes first.
  std::size_t number_bytes(std::size_t b) const { return (parts == 0 ? 2 : 2 * parts) * columns_of(b) * kTileTokens; }
  // Integers have CodeFactors behind them.
  std::size_t group_bytes(std::size_t b) const;
  // Returns where a block of the g-th kTileTokens tokens begins. `b` may be the number of blocks: the end.
  std::size_t place(std::size_t g, std::size_t b, std::size_t tokens) const {
    const std::size_t before = b == 0 ? 0 : b * groups(tokens) * group_bytes(0);
    if (b < blocks()) return before + g * group_bytes(b);
    return before - groups(tokens) * (group_bytes(0) - group_bytes(b - 1));
  }
};

// Of kTileTokens tokens in a block: a token's integers times `scale` are its x.
struct CodeFactors {
  std::int32_t starts[kTileTokens];  // minus what is taken off codes, times the sum of the integers
  float scales[kTileTokens];
  float sums[kTileTokens];  // of the integers, times the scale
};

inline std::size_t TileLayout::group_bytes(std::size_t b) const {
  return number_bytes(b) + (parts == 0 ? sizeof(CodeFactors) : 0);
}

// Returns the layout for a matrix. Products of a block have exact sums of integers: 32 bits hold kTileCodeBlock times
// the largest integer times 128, which no code exceeds once something is taken off it.
TileLayout tile_layout(const StoredRows& matrix);

// Takes a part of the x of `tokens` tokens. Where there are no tokens, what `out` gets does not matter. Requires: it
// begins with a multiple of kTileTokens.
void take_tile_numbers(const InputPart& part, std::size_t tokens, const TileLayout& layout, std::byte* out);

}  // namespace poise
