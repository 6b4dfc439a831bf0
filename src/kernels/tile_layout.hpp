// Describes how the x of several tokens is laid out for a matrix unit (tiles.hpp), and converts stored weights to
// tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/code_panel.hpp"
#include "kernels/tiles.hpp"

namespace poise {

// A panel of weights has at most this number of columns, so that the first-level cache holds a panel of one part and
// the x of two groups of tokens.
inline constexpr std::size_t kTileBlock = 256;                 // bfloat16 numbers
inline constexpr std::size_t kTileCodeBlock = 2 * kTileBlock;  // codes

// Describes how the x of some tokens is laid out for the products with a matrix.
struct TileLayout {
  std::size_t columns = 0;
  std::size_t parts = 0;   // bfloat16 numbers whose sum stands for one number of x; 0: x is integers
  std::int32_t taken = 0;  // the number that is subtracted from each code, if x is integers

  bool operator==(const TileLayout&) const = default;

  std::size_t block_columns() const { return parts == 0 ? kTileCodeBlock : kTileBlock; }
  std::size_t blocks() const { return (columns + block_columns() - 1) / block_columns(); }
  // Returns how many columns a block has, padded to whole tiles.
  std::size_t count_columns(std::size_t b) const {
    const std::size_t whole = parts == 0 ? kTileBytes : kTileColumns;
    return std::min(block_columns(), (columns - b * block_columns() + whole - 1) / whole * whole);
  }
  static std::size_t count_groups(std::size_t tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

  // Returns how many bytes the numbers of kTileTokens tokens in a block take: parts [parts, columns / 2, kTileTokens,
  // 2], or integers [2, columns / 4, kTileTokens, 4], the upper bytes first.
  std::size_t count_number_bytes(std::size_t b) const {
    return (parts == 0 ? 2 : 2 * parts) * count_columns(b) * kTileTokens;
  }
  // Returns how many bytes a group of tokens has in a block. CodeFactors follow integers.
  std::size_t count_group_bytes(std::size_t b) const;
  // Returns the byte offset of block b for the g-th group of kTileTokens tokens. If b is blocks(), returns the size of
  // all blocks together.
  std::size_t find_offset(std::size_t g, std::size_t b, std::size_t tokens) const {
    const std::size_t before = b == 0 ? 0 : b * count_groups(tokens) * count_group_bytes(0);
    if (b < blocks()) return before + g * count_group_bytes(b);
    return before - count_groups(tokens) * (count_group_bytes(0) - count_group_bytes(b - 1));
  }
};

// Holds the factors of kTileTokens tokens in a block: a token's integers times its scale are its x.
struct CodeFactors {
  std::int32_t starts[kTileTokens];  // -TileLayout::taken * the sum of the integers
  float scales[kTileTokens];
  float sums[kTileTokens];  // sums of the integers, times the scale
};

inline std::size_t TileLayout::count_group_bytes(std::size_t b) const {
  return count_number_bytes(b) + (parts == 0 ? sizeof(CodeFactors) : 0);
}

// Returns the layout for a matrix. If x is integers, sums of products in a block are exact: 32 bits hold kTileCodeBlock
// times the largest integer times 128, and no code exceeds 128 after the subtraction.
TileLayout make_tile_layout(const StoredRows& matrix);

// Decodes a part of rows and rounds the numbers to bfloat16: out [kTileRows, stride]. NaN stays NaN, and an infinite
// scale makes its numbers infinite or NaN. The codes, scales and mins of `part` are working memory. If part.count is
// not a multiple of 32, the function also reads and writes up to the next multiple; those numbers are undefined.
void round_codes(const StoredRows& matrix, const CodePart& part, const CodeForm& form, std::uint16_t* out,
                 std::size_t stride);

// Transposes words of four bytes: `tokens` [kTileTokens, words], whose rows are `stride` bytes apart, becomes out
// [words, kTileTokens]. Requires: `words` is a multiple of 16.
void store_tile_words(const void* tokens, std::size_t stride, std::size_t words, void* out);

// Interleaves two rows of bfloat16 numbers: out + i * step gets the i-th kTileTokens numbers of both, in pairs.
// Requires: `count` is a multiple of kTileTokens.
void store_tile_pairs(const std::uint16_t* first, const std::uint16_t* second, std::size_t count, std::uint16_t* out,
                      std::size_t step);

// Computes sums [kTileRows, kTileTokens] += scale * (256 * upper + lower + start), with the scale and start of each
// token. If is_first, sets the sums instead. scale_sums() applies the scale of the weights later.
void add_code_sums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, bool is_first,
                   float* sums);

// Computes sums [kTileRows, kTileTokens] = scale * sums + added [kTileTokens].
void scale_sums(float scale, const float* added, float* sums);

// Stores y[t * stride + r] = sums[r][t] for the first `rows` rows and `tokens` tokens of sums [kTileRows, kTileTokens].
void store_sums(const float* sums, std::size_t rows, std::size_t tokens, float* y, std::size_t stride);

}  // namespace poise
