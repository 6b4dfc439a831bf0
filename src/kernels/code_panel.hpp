// Products of several tokens with weights that are integers: sums of products are exact for the columns that share a
// scale, and float32 adds them up.
//
// A panel has the codes of some rows and columns, one a byte, in one of two orders. For vectors, four columns of a row
// are side by side and then those of the next row: one instruction multiplies them with four columns of a token. For
// matrix units, each row is by itself. x becomes integers of 7 bits and a sign, or of 15, for a matrix unit as 256
// times one byte and another.
//
// Weights of float16 and bfloat16 become 16-bit integers with a scale for each step of columns, and so does x. Two
// columns take the place of four. The largest integer is kLargestRounded, so that 32 bits hold the sum of a step. An
// instruction makes twice as many products as with float32 numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stored_rows.hpp"

namespace poise {

inline constexpr std::size_t kCodeRows = 32;    // of a panel
inline constexpr std::size_t kCodeTokens = 8;   // side by side
inline constexpr std::size_t kCodeBlock = 512;  // columns of a panel, at most
inline constexpr std::size_t kLeastStep = 16;   // columns that share a scale
inline constexpr std::size_t kMostStep = 128;
inline constexpr std::size_t kMostTiledStep = 256;  // on a matrix unit: 32 bits hold 256 * 255 * 32639
inline constexpr std::size_t kMostRoundedStep = 64;
inline constexpr std::int32_t kLargestRounded = 5792;  // 32 bits hold 64 * 5792 * 5792
// Float16 and bfloat16 rows with fewer columns stay numbers: their products take no time worth a rounding.
inline constexpr std::size_t kLeastRoundedColumns = 1024;

// Says which integers meet in a product.
enum class PanelIntegers : std::uint8_t {
  bytes,    // codes, and x of 7 bits and a sign
  words,    // codes, and x of 15 bits and a sign
  rounded,  // weights and x, in 16 bits, as described above
};

// Names columns [begin, begin + count) of rows [first, last), up to kCodeRows, and where they go. Requires: `begin` is
// a multiple of kLargestBlock, and so is the end or it is the matrix's.
struct CodePart {
  static constexpr std::size_t kLargestBlock = 256;

  std::size_t first;
  std::size_t last;
  std::size_t begin;
  std::size_t count;
  std::size_t step;  // columns that share a scale, in the panel
  // Codes without signs: [count / 4, kCodeRows, 4] or [kCodeRows, row_bytes]; rounded numbers: int16 [count / 2,
  // kCodeRows, 2]. Null: not wanted.
  std::uint8_t* codes;
  float* scales;                // [count / step, kCodeRows]
  float* mins;                  // the same: what is added to each code times scale
  std::size_t row_bytes = 0;    // 0: the order for vectors
  void (*between)() = nullptr;  // called after every kLargestBlock columns or so, unless it is null
};

// Gives the places of codes of four bits in blocks where 32 columns share a scale: in 16 bytes, whose low halves are
// the first 16 columns, or in 32 bytes, whose low halves are 32 columns and whose high halves the next 32.
struct NibblePlaces {
  std::size_t block_bytes = 0;  // 0: the codes are others
  std::size_t first = 0;        // byte of a block
  std::size_t together = 16;    // bytes
};

// Describes how a stored type becomes panels.
struct CodeForm {
  void (*expand)(const StoredRows& matrix, const CodePart& part) = nullptr;  // null: it does not
  std::size_t elements = 0;                                                  // of a block of it: rows are whole blocks
  std::size_t group = 0;    // columns that share a scale; 0: as many as the matrix says
  std::int32_t offset = 0;  // what is taken off each code
  bool has_mins = false;
  PanelIntegers integers = PanelIntegers::bytes;
  std::uint8_t largest = 0;  // code
  bool vnni = false;         // these kernels have its instructions
  NibblePlaces nibbles = {};
};

// Describes how the x of some tokens is laid out for panels.
struct CodeLayout {
  std::size_t columns = 0;
  std::size_t step = 0;  // columns that share a scale
  std::int32_t offset = 0;
  PanelIntegers integers = PanelIntegers::bytes;
  bool tiled = false;  // words for a matrix unit (multiply_panel_tiles())

  bool operator==(const CodeLayout&) const = default;

  // Returns how many bytes the integers of kCodeTokens tokens in a step take:
  //   bytes                     [step / 4, kCodeTokens, 4]
  //   words                     int16 [step / 4, 2, kCodeTokens, 2]: the first and third of four columns, then the
  //   others words for a matrix unit   [2, kCodeTokens, step]: the upper bytes, then the lower ones rounded int16 [step
  //   / 2, kCodeTokens, 2]
  std::size_t integer_bytes() const { return (integers == PanelIntegers::bytes ? 1 : 2) * step * kCodeTokens; }
  // Returns the bytes of a row in a step of a panel for vectors.
  std::size_t row_bytes() const { return (integers == PanelIntegers::rounded ? 2 : 1) * step; }
  // Returns the columns of a panel, at most: a panel has the same bytes for codes and rounded numbers.
  std::size_t block() const { return integers == PanelIntegers::rounded ? kCodeBlock / 2 : kCodeBlock; }
  // Returns the bytes of a step. After the integers it has, for each token, minus the offset times the sum of its
  // integers, their scale, and the scale times that sum.
  std::size_t step_bytes() const { return integer_bytes() + 128; }
  std::size_t groups(std::size_t tokens) const { return (tokens + kCodeTokens - 1) / kCodeTokens; }
  std::size_t blocks() const { return (columns + block() - 1) / block(); }
  std::size_t count_steps(std::size_t b) const {
    const std::size_t rest = columns - b * block();
    return (rest < block() ? rest : block()) / step;
  }
  // Returns where a block of columns of the g-th kCodeTokens tokens begins.
  std::size_t place(std::size_t g, std::size_t b, std::size_t tokens) const {
    return (b * groups(tokens) * (block() / step) + g * count_steps(b)) * step_bytes();
  }
};

// Returns how many columns share a scale in panels of a matrix, up to `most`; 0 if it becomes no panels on this
// processor.
std::size_t find_panel_step(const StoredRows& matrix, std::size_t most);

// Returns the layout of a matrix that is multiplied as panels. Its step is 0 if this processor does not multiply it so.
CodeLayout make_code_layout(const StoredRows& matrix);

}  // namespace poise
