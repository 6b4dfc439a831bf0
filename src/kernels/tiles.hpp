// Sums of products on the matrix unit of a processor: Intel's AMX, whose registers are tiles of 16 rows of 64 bytes.
//
// The unit multiplies bfloat16 and sums float32. So that nothing is lost that matters, a number is taken as two:
// `high`, the number rounded to bfloat16, and `low`, what is left of it, rounded too. Of the four products of two such
// numbers that of the lows is left out. A product is then wrong by 2 / 65536 of it at most, if the numbers are between
// 1e-32 and 3e38, for what is too small for float32's normal form counts as zero; if one of the two is a bfloat16
// number, by half of 1 / 65536. The sums are those of float32, in an order that depends on the columns only. An
// infinity makes its sums infinite or NaN.
#pragma once

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

// What products of several tokens use: amx where the processor has it, the system lets this process use it, and a first
// product came out right; else none. (The system's leave is for the whole process and for good; signal stacks must then
// hold 8 KiB more.)
TileUnit tile_unit();
// For tests. Requires: `amx` only where tile_unit() has named it.
void choose_tile_unit(TileUnit unit);

inline constexpr std::size_t kTileRows = 32;     // of weights, multiplied at once
inline constexpr std::size_t kTileTokens = 32;   // side by side
inline constexpr std::size_t kTileColumns = 32;  // come together; the columns of a block are a multiple

// Makes the unit ready for this thread, and gives it back.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// bfloat16 numbers at an address that suits the unit: a tile's row that crossed lines of the cache would be read twice.
using TileNumbers = std::vector<std::uint16_t, tbb::cache_aligned_allocator<std::uint16_t>>;

// Some columns of rows and of tokens.
struct TileBlock {
  const std::uint16_t* high = nullptr;  // weights [kTileRows, stride]
  const std::uint16_t* low = nullptr;   // null: the weights are bfloat16 numbers
  std::size_t stride = 0;
  const std::uint16_t* x_high = nullptr;  // [columns / 2, kTileTokens, 2]
  const std::uint16_t* x_low = nullptr;
  std::size_t columns = 0;
  std::size_t tokens = kTileTokens;  // up to 16: the others are left alone
};

// Adds the products of a block to sums [kTileRows, kTileTokens]. Requires: a TileScope of this thread.
void multiply_tiles(const TileBlock& block, float* sums);

}  // namespace poise
