// Multiplies several tokens by weights that are integers. A step is a run of columns that share a scale. The products
// of a step are summed exactly; the sums of steps are added in float32.
//
// A panel is an array with the codes of some rows and columns, one code a byte, in one of two orders. In the order for
// vectors, four columns of the first row are followed by the same four columns of the second row, and so on; one
// instruction multiplies four columns of several rows by those of a token. In the order for matrix units, the rows
// follow each other. x becomes integers of 7 bits and a sign, or of 15 bits and a sign. For a matrix unit, two bytes
// hold an integer of 15 bits: 256 * upper + lower.
//
// Float16 and bfloat16 weights, and x with them, become 16-bit integers with a scale for each step. Two such columns
// have the place of four codes. The largest integer is kLargestRounded, so that 32 bits hold the sum of a step. An
// instruction makes twice as many products as with float32 numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stored_rows.hpp"

namespace poise {

inline constexpr std::size_t kCodeRows = 32;        // rows in a panel
inline constexpr std::size_t kCodeTokens = 8;       // tokens whose x is interleaved
inline constexpr std::size_t kCodeBlock = 512;      // columns of a panel, at most
inline constexpr std::size_t kLeastStep = 16;       // columns of a step, at least
inline constexpr std::size_t kMostStep = 128;       // columns of a step, at most, unless CodeLayout::tiled
inline constexpr std::size_t kMostTiledStep = 256;  // the same if tiled: 32 bits hold 256 * 255 * 32639
inline constexpr std::size_t kMostRoundedStep = 64;
inline constexpr std::int32_t kLargestRounded = 5792;  // 32 bits hold 64 * 5792 * 5792
// Float16 and bfloat16 rows with fewer columns are not rounded to integers, because their products take little time
// anyway.
inline constexpr std::size_t kLeastRoundedColumns = 1024;

// Chooses the integers that a product multiplies.
enum class PanelIntegers : std::uint8_t {
  bytes,    // codes, and x of 7 bits and a sign
  words,    // codes, and x of 15 bits and a sign
  rounded,  // weights and x, in 16 bits, as described above
};

// Describes the part of a matrix that becomes a panel: columns [begin, begin + count) of rows [first, last), at most
// kCodeRows. Requires: `begin` is a multiple of kLargestBlock, and so is the end, unless it is the end of the rows.
struct CodePart {
  static constexpr std::size_t kLargestBlock = 256;

  std::size_t first;
  std::size_t last;
  std::size_t begin;
  std::size_t count;
  std::size_t step;  // columns that share a scale, in the panel
  // Receives codes without signs, [count / 4, kCodeRows, 4] or [kCodeRows, row_bytes], or rounded numbers, int16 [count
  // / 2, kCodeRows, 2]. Null: not wanted.
  std::uint8_t* codes;
  float* scales;                // [count / step, kCodeRows]
  float* mins;                  // the same shape: the numbers added to code * scale
  std::size_t row_bytes = 0;    // 0: the order for vectors
  void (*between)() = nullptr;  // called about once for kLargestBlock columns of a few rows; null: not called
};

// Describes blocks with codes of four bits, in which 32 columns share a scale. If `together` is 16, the low halves of
// 16 bytes are 16 columns, and the high halves are the next 16. If it is 32, the low halves of 32 bytes are 32 columns,
// and the high halves are the next 32.
struct NibblePlaces {
  std::size_t block_bytes = 0;  // 0: the type has other codes
  std::size_t first = 0;        // the first byte with codes in a block
  std::size_t together = 16;    // bytes
};

// Describes how a stored type becomes panels.
struct CodeForm {
  void (*expand)(const StoredRows& matrix, const CodePart& part) = nullptr;  // null: the type cannot become panels
  std::size_t elements = 0;  // columns of a block; rows are whole blocks
  std::size_t group = 0;     // columns that share a scale; 0: StoredRows::group_size, or all if that is 0
  std::int32_t offset = 0;   // the number that is subtracted from each code
  bool has_mins = false;
  PanelIntegers integers = PanelIntegers::bytes;
  std::uint8_t largest = 0;  // the largest code
  bool vnni = false;         // the kernels are compiled for AVX-512 VNNI
  NibblePlaces nibbles = {};
};

// Describes how the x of some tokens is laid out for panels.
struct CodeLayout {
  std::size_t columns = 0;
  std::size_t step = 0;  // columns that share a scale
  std::int32_t offset = 0;
  PanelIntegers integers = PanelIntegers::bytes;
  bool tiled = false;  // the layout is that of a matrix unit (multiply_panel_tiles())

  bool operator==(const CodeLayout&) const = default;

  // Returns how many bytes the integers of kCodeTokens tokens in a step take. Their order is:
  //   bytes          [step / 4, kCodeTokens, 4]
  //   words          int16 [step / 4, 2, kCodeTokens, 2]: columns 0 and 2 of each four, then columns 1 and 3
  //   words, tiled   [2, kCodeTokens, step]: the upper bytes, then the lower bytes
  //   rounded        int16 [step / 2, kCodeTokens, 2]
  std::size_t count_integer_bytes() const { return (integers == PanelIntegers::bytes ? 1 : 2) * step * kCodeTokens; }
  // Returns how many bytes a row has in a step of a panel for vectors.
  std::size_t count_row_bytes() const { return (integers == PanelIntegers::rounded ? 2 : 1) * step; }
  // Returns the largest number of columns of a panel. Rounded numbers take two bytes, so their panels have half as many
  // columns in the same memory.
  std::size_t block_columns() const { return integers == PanelIntegers::rounded ? kCodeBlock / 2 : kCodeBlock; }
  // Returns how many bytes a step of kCodeTokens tokens has. After the integers come three arrays with a number of 32
  // bits for each token: -offset * (the sum of its integers), their scale, and scale * sum, which rounded numbers do
  // not have. Padding comes last.
  std::size_t count_step_bytes() const { return count_integer_bytes() + 128; }
  std::size_t count_groups(std::size_t tokens) const { return (tokens + kCodeTokens - 1) / kCodeTokens; }
  std::size_t blocks() const { return (columns + block_columns() - 1) / block_columns(); }
  std::size_t count_steps(std::size_t b) const {
    const std::size_t rest = columns - b * block_columns();
    return (rest < block_columns() ? rest : block_columns()) / step;
  }
  // Returns the byte offset of a block of columns for the g-th group of kCodeTokens tokens.
  std::size_t find_offset(std::size_t g, std::size_t b, std::size_t tokens) const {
    return (b * count_groups(tokens) * (block_columns() / step) + g * count_steps(b)) * count_step_bytes();
  }
};

// Refers to the codes, x and sums of a block of columns, which is some steps (columns that share a scale).
struct CodeTile {
  const std::uint8_t* codes;  // the codes of the first row
  const float* scales;        // [steps, kCodeRows]
  const float* mins;          // the same shape
  const std::byte* x;         // the x of the first token
  std::size_t steps;
  std::size_t row_bytes;           // the bytes of a row in one step of the panel
  std::size_t step_bytes;          // the bytes from the x of a step to that of the next
  float* sums;                     // [tokens, kCodeRows]
  std::size_t stride = kCodeRows;  // the distance of two tokens in `sums`
};

// Attention uses the three functions below to make and multiply panels of numbers that are not a stored matrix.

// Returns true if this processor has the instructions for panels of rounded numbers (AVX-512 VNNI).
bool can_multiply_rounded_panels();

// Rounds a step of a panel of kCodeRows rows. The number of row r in column i is numbers[i * stride + r]. Writes
// `codes` as int16 [columns / 2, kCodeRows, 2], and `scales`, kCodeRows of them. The scale of a row with a number that
// is not finite is NaN. Requires: can_multiply_rounded_panels(); columns is even, and at most kMostRoundedStep.
void round_panel_step(const float* numbers, std::size_t columns, std::size_t stride, std::uint8_t* codes,
                      float* scales);

// Adds the products of a panel of rounded numbers and the first `tokens` of kCodeTokens tokens to `sums`. May also
// write the sums of the other tokens. Does not use `mins`, which may point to any numbers. Requires:
// can_multiply_rounded_panels().
void multiply_rounded_tile(const CodeTile& tile, std::size_t tokens);

// Returns how many columns share a scale in panels of a matrix, up to `most`; 0 if the matrix cannot become panels on
// this processor.
std::size_t find_panel_step(const StoredRows& matrix, std::size_t most);

// Returns the layout of x for products with a matrix as panels. The step is 0 if this processor multiplies the matrix
// in another way.
CodeLayout make_code_layout(const StoredRows& matrix);

}  // namespace poise
