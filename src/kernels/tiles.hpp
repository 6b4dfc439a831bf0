// Sums of products on the matrix unit of a processor: Intel's AMX, whose registers are tiles of 16 rows of 64 bytes.
//
// The unit multiplies bfloat16 and sums float32. A number is split into a sum of bfloat16 numbers: the first part is
// the number rounded to bfloat16, the next the remainder, rounded, too. The largest relative error of a product:
//
//   two parts each      2 / 65536 of it: the product of the second parts is left out, and what two parts leave of a
//                       number. If one of the two is a bfloat16 number, half of 1 / 65536
//   three parts each    2^-24 of it, as much as float32 rounds it: three parts are a float32 number exactly, and the
//                       three smallest of their nine products are left out
//
// This holds for numbers between 1e-31 and 3e38, since numbers below float32's normal range count as zero. Sums are
// float32, in an order that depends only on the columns. An infinity makes its sums infinite or NaN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tbb/cache_aligned_allocator.h>

namespace poise {

enum class TileUnit : std::uint8_t {
  none,
  plain,  // the same products in ordinary code: slow, for tests on any machine
  amx,
};

// The unit for products of several tokens: amx if the processor has it, the system lets this process use it, and a
// first product came out right; else none. (The OS grants it once per process, permanently; signal stacks must then
// hold 8 KiB more.)
TileUnit tile_unit();
// For tests. Requires: `amx` only if tile_unit() has returned it.
void choose_tile_unit(TileUnit unit);

inline constexpr std::size_t kTileRows = 32;     // of weights, multiplied at once
inline constexpr std::size_t kTileTokens = 32;   // side by side
inline constexpr std::size_t kTileColumns = 32;  // come together; the columns of a block are a multiple
inline constexpr std::size_t kMostTileParts = 3;

// Prepares the unit for this thread, and releases it.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// bfloat16 numbers aligned for the unit: a tile's row that crossed cache lines would be read twice.
using TileNumbers = std::vector<std::uint16_t, tbb::cache_aligned_allocator<std::uint16_t>>;

// The parts of some numbers, one array for each; null for missing ones.
using TileParts = std::array<const std::uint16_t*, kMostTileParts>;

// Some columns of rows and of tokens.
struct TileBlock {
  TileParts weights = {};  // each [kTileRows, stride]; one part: they are bfloat16 numbers
  std::size_t stride = 0;
  TileParts x = {};  // each [columns / 2, kTileTokens, 2]; two parts, or three where the weights have three
  std::size_t columns = 0;
  std::size_t tokens = kTileTokens;  // up to 16: the others are unused
};

// Adds the products of a block to sums [kTileRows, kTileTokens]. Sums those of three parts separately first, the
// smallest before the others: rounding then costs no more than for whole numbers. Requires: a TileScope of this thread.
void multiply_tiles(const TileBlock& block, float* sums);

}  // namespace poise
