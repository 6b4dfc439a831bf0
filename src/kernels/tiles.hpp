// Computes sums of products on the matrix unit of a processor: Intel's AMX, whose registers are tiles of 16 rows of 64
// bytes.
//
// The unit multiplies bfloat16 numbers with sums in float32, and bytes with exact sums in 32 bits. Weights are the
// first factor of a product: each row of a tile is a piece of a row of weights, in the order of files. x is the second
// factor: a row of a tile has four bytes (of neighbouring columns) of the first token, then four of the next token, and
// so on.
//
// A number becomes a sum of bfloat16 numbers, its parts: the first is the number rounded to bfloat16, the next is the
// remainder, rounded, and so on. The largest error of a product, relative to the product:
//
//   one part each          2^-7: each is rounded once, by 2^-8 at most; rms 0.16 % each
//   one, but two of x      2^-17 if the weight is a bfloat16 number, so that its part is exact
//   two parts each         2^-15: without the product of the second parts, and without the remainders after two parts
//   three parts each       2^-24, as much as float32 rounds it: three parts are a float32 number exactly, and the three
//                          smallest of their nine products are left out
//
// This holds for numbers between 1e-31 and 3e38, since numbers below float32's normal range count as zero. Sums are
// float32, in an order that depends only on the columns. An infinity makes its sums infinite or NaN.
//
// If bytes are multiplied, weights are codes without a sign, and x is integers of 15 bits and a sign, each in two
// bytes. Products and sums are then exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace poise {

enum class TileUnit : std::uint8_t {
  none,
  plain,  // the same instructions in ordinary code: slow, for tests on any machine
  amx,
};

// Returns the unit for products of several tokens. Unless choose_tile_unit() has chosen another, this is `amx` if the
// processor has AMX, the system lets this process use it, and its first products are right; otherwise `none`. The
// permission lasts as long as the process. With it, signal stacks must hold 8 KiB more.
TileUnit get_tile_unit();
// Lets tests choose the unit. Requires: get_tile_unit() has returned the unit before, if it is `amx`.
void choose_tile_unit(TileUnit unit);

inline constexpr std::size_t kTileRows = 32;     // rows of weights that are multiplied at once
inline constexpr std::size_t kTileTokens = 16;   // tokens in a tile
inline constexpr std::size_t kTileColumns = 32;  // bfloat16 numbers in a row of a tile
inline constexpr std::size_t kTileBytes = 64;    // bytes in a row of a tile
inline constexpr std::size_t kMostTileParts = 3;
inline constexpr std::size_t kTileSums = kTileRows * kTileTokens;  // sums of kTileRows rows for kTileTokens tokens

// Returns the distance, in numbers, from a row of a panel to the next. Rows a power of two apart would compete for the
// same few sets of the cache.
constexpr std::size_t find_tile_row_stride(std::size_t columns) { return columns + kTileColumns; }

// Prepares the unit for this thread, and releases it.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// Refers to the parts of some numbers: an array for each part, or null for a missing part. Arrays begin at cache lines,
// because a row of a tile that crosses lines takes two reads.
using TileParts = std::array<const std::uint16_t*, kMostTileParts>;

// Refers to a block of columns as bfloat16 parts: kTileRows rows of weights, and some groups of tokens. x has as many
// parts as the weights; if these have one part, x may have two.
struct TileBlock {
  TileParts weights = {};   // each [kTileRows, stride]
  std::size_t stride = 0;   // numbers
  TileParts x = {};         // each [columns / 2, kTileTokens, 2]
  std::size_t groups = 1;   // groups of kTileTokens tokens
  std::size_t step = 0;     // numbers from the x of a group to that of the next
  std::size_t columns = 0;  // a multiple of kTileColumns
  bool is_first = false;    // the sums are set, not added to
  // The distances, in numbers, from one row's sums to the next row's, and from one group's sums to the next group's.
  std::size_t row_step = kTileTokens;
  std::size_t group_step = kTileSums;
};

// Adds the products of a block to sums [groups, kTileRows, kTileTokens], whose places follow from row_step and
// group_step. Three parts have six products for each pair of numbers. These are summed for the block alone, the
// smallest first, so that sums are not rounded more than those of float32 numbers. Requires: this thread has a
// TileScope; row_step and group_step are the default if three parts are added to sums.
void multiply_tiles(const TileBlock& block, float* sums);

// Refers to a block of columns: codes of kTileRows rows, and the integers of one tile of tokens, split into upper and
// lower bytes. `columns` is a multiple of kTileBytes.
struct CodeTiles {
  const std::uint8_t* codes = nullptr;  // [kTileRows, stride]
  std::size_t stride = 0;
  const std::int8_t* upper = nullptr;  // [columns / 4, kTileTokens, 4]
  const std::int8_t* lower = nullptr;  // [columns / 4, kTileTokens, 4], too
  std::size_t columns = 0;
};

// Computes sums of products with both bytes, each [kTileRows, kTileTokens]: exact where 32 bits hold them.
void multiply_code_tiles(const CodeTiles& block, std::int32_t* upper_sums, std::int32_t* lower_sums);

// Refers to some columns of a panel of codes in the order for vectors (code_panel.hpp), and to the integers of
// kTileTokens / 2 tokens. Here x is the first factor: the upper bytes of all tokens, then the lower bytes.
struct PanelTiles {
  const std::uint8_t* codes = nullptr;  // [columns / 4, kTileRows, 4]
  const std::int8_t* x = nullptr;       // [kTileTokens, columns]
  std::size_t columns = 0;              // a multiple of kTileBytes
  // The distance in bytes to the x of the next `columns` columns, which get sums of their own. 0: there are no more.
  std::size_t next = 0;
};

// Computes sums of products [1 or 2, 2, kTileTokens, kTileRows / 2]; the first half of the rows comes first. They are
// exact where 32 bits hold them.
void multiply_panel_tiles(const PanelTiles& panel, std::int32_t* sums);

// Keeps a matrix unit ready. Callers call this between products, every hundred cycles or so: after a longer pause, a
// product takes 75 cycles instead of 16. Does not change sums that are in use. Requires: this thread has a TileScope.
void keep_tiles_awake();

// Counts the instructions of a matrix unit that this thread has emulated (TileUnit::plain). A real unit would run the
// same number.
struct TileCounts {
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t products = 0;
};
TileCounts get_tile_counts();

}  // namespace poise
