// Products of weights with x, directly from their storage. Chosen for the processor at run time.
//
// Weights may be at any address. The order of each sum depends only on the columns, and on whether there are few tokens
// or many, and on the form that x takes: the result is the same to the bit for any thread and any neighbours. Each of
// few tokens (KernelInput::is_few()) is multiplied as one alone, with rows that are read and unpacked once for several.
//
// Weights are converted to float32, multiplied and summed in float32. On a processor with a matrix unit, products of
// several tokens use tiles.hpp: with float32 weights they are within 2^-24 of each, float32's own rounding, with
// bfloat16 weights within 2^-17, with float16 weights within 2^-15. Weights in groups or blocks of codes are rounded to
// bfloat16, as x is: within 2^-7, rms 0.25 % at most, which is less than half of what integers of 7 bits cost (below).
// Codes with one scale for all meet x as integers of 15 bits and a sign, with exact sums: half a step is
// max(abs(x)) / 65278 of 512 columns. Up to kTokensOfPanels tokens take panels of codes instead, as below, where these
// are faster: half a step is then max(abs(x)) / 65278 of at most 256 columns.
//
// Otherwise integer codes (blocks: of the types in the table of stored_blocks.cpp) stay integers and x becomes
// integers, too; products of codes that share a scale are summed exactly. x has 15 bits and a sign. For blocks of codes
// of six bits and fewer, and for many tokens with any codes of four, it has 7 bits and a sign, with one scale for each
// 32 columns: twice as many products an instruction, and far less error than such codes have themselves. That moves a
// result by at most half a step for each weight, times that weight. For few tokens half a step is max(abs(x)) / 65534
// of 1024 columns, or max(abs(x)) / 254 of 32. For many, where the processor has AVX2 or better (for 15 bits: AVX-512
// VNNI) and rows are whole groups, it is max(abs(x)) / 65278 of at most 128 columns, or max(abs(x)) / 254 of at most 32
// (code_panel.hpp).
//
// With AVX-512 VNNI, many tokens and at least 1,024 columns, weights of float16 and bfloat16 become integers as x does.
// Half a step of each is max(abs()) / 11584 of at most 64 columns. A result moves by half a step of x for each weight,
// and by half a step of the weights for each x: for normal numbers rms 0.0002, less than the 0.0004 of llama.cpp's
// float16 and the 0.0023 of one bfloat16 part. It takes half of the instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/aligned_vector.hpp"
#include "kernels/code_panel.hpp"
#include "kernels/stored_rows.hpp"
#include "kernels/tile_layout.hpp"

namespace poise {

// Returns whether the product with few tokens takes x as integers: weights are codes, in groups (if any) that the
// kernels know.
bool takes_integers(const StoredRows& matrix);

// Says how much a product may round.
enum class Precision : std::uint8_t {
  fast,   // as described above
  exact,  // weights and x are float32 for any storage and processor; sums are float32
  apart,  // as `fast` for one token, also for each of several
};

// Holds x [tokens, columns] in the form for products, which is the same for all matrices of one storage, columns and
// group size.
class KernelInput {
 public:
  enum class Form : std::uint8_t { floats, words, bytes, tiles, panels };  // the structs below, in their order
  static constexpr std::size_t kFloatBlock = 256;
  static constexpr std::size_t kTogether = 32;  // tokens interleaved
  static constexpr std::size_t kIntegerBlock = 1024;
  static constexpr std::size_t kByteBlock = 32;
  static constexpr std::size_t kPadding = 128;  // integers are padded with zeros to a multiple of it

  // Up to kFewTokens tokens are multiplied one by one; more tokens repay the unpacking of all weights. A matrix unit
  // repays it earlier, and panels of codes earlier still where they meet x of 7 bits by AVX-512 VNNI, or of 15 bits on
  // a matrix unit. Up to kTokensOfPanels such panels are faster than all other ways.
  static constexpr std::size_t kFewTokens = 16;
  static constexpr std::size_t kFewTokensWithTiles = 8;
  static constexpr std::size_t kFewTokensWithPanels = 6;
  static constexpr std::size_t kTokensOfPanels = 32;

  struct Floats {
    Floats(const StoredRows& matrix, std::size_t tokens, bool is_few);
    bool suits(const StoredRows&) const { return true; }
    void convert_token(const float* x, std::size_t t);
    void convert(const InputPart& part);

    std::size_t blocks() const { return (columns + kFloatBlock - 1) / kFloatBlock; }
    std::size_t groups() const { return (tokens + kTogether - 1) / kTogether; }
    // Returns x of the t-th of few tokens, unchanged.
    const float* token(std::size_t t) const { return numbers.data() + t * columns; }
    // Returns, for many tokens, a block of columns of the g-th kTogether tokens, [columns, kTogether]. Missing tokens
    // are zeros.
    const float* group(std::size_t g, std::size_t block) const {
      return numbers.data() + (block * groups() + g) * kFloatBlock * kTogether;
    }

    std::size_t tokens;
    std::size_t columns;
    bool is_few;
    AlignedFloats numbers;
  };

  // Holds x of few tokens as integers of 15 bits and a sign. Those of a block are `planes` runs: the first has columns
  // 0, planes, 2 * planes, ..., the second 1, planes + 1, ...: the order of a weight's codes in 16-bit words.
  struct Words {
    Words(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert_token(const float* x, std::size_t t);

    std::size_t blocks() const { return (columns + kIntegerBlock - 1) / kIntegerBlock; }
    const std::int16_t* integers(std::size_t t, std::size_t block) const {
      return numbers.data() + (t * blocks() + block) * kIntegerBlock;
    }
    // Returns how many integers a block has, with padding.
    std::size_t count_integers(std::size_t block) const {
      const std::size_t rest = columns - block * kIntegerBlock;
      return rest > kIntegerBlock ? kIntegerBlock : (rest + kPadding - 1) / kPadding * kPadding;
    }
    // Returns the factor of a block's integers.
    float scale(std::size_t t, std::size_t block) const { return scales[t * blocks() + block]; }
    // Returns the sum of x in each group of columns, padded with zeros to sums_stride; without groups one sum.
    const float* get_sums(std::size_t t) const { return sums.data() + t * sums_stride; }

    std::size_t tokens;
    std::size_t columns;
    std::size_t planes;
    std::size_t group_size;  // 0: none
    std::size_t sums_stride;
    std::vector<std::int16_t> numbers;
    std::vector<float> scales;
    std::vector<float> sums;
  };

  // Holds x of few tokens as integers of 7 bits and a sign, in the order of columns. Each kByteBlock columns have a
  // factor.
  struct Bytes {
    Bytes(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert_token(const float* x, std::size_t t);

    const std::int8_t* integers(std::size_t t) const { return numbers.data() + t * columns; }
    // Return, for each group of columns, the factor of its integers, and the factor times their sum: each four times.
    const float* get_scales(std::size_t t) const { return scales.data() + t * sums_stride; }
    const float* get_sums(std::size_t t) const { return sums.data() + t * sums_stride; }
    // Return the same two for each kByteBlock columns, once.
    const float* get_block_scales(std::size_t t) const { return block_scales.data() + t * (columns / kByteBlock); }
    const float* get_block_sums(std::size_t t) const { return block_sums.data() + t * (columns / kByteBlock); }
    // Returns the sums of the integers of each 16 columns.
    const std::int16_t* get_integer_sums(std::size_t t) const { return integer_sums.data() + t * (columns / 16); }

    std::size_t tokens;
    std::size_t columns;
    std::size_t group_size;
    std::size_t sums_stride;
    std::vector<std::int8_t> numbers;
    std::vector<float> scales;
    std::vector<float> sums;
    std::vector<float> block_scales;
    std::vector<float> block_sums;
    std::vector<std::int16_t> integer_sums;
  };

  // Holds x of several tokens, in groups of as many tokens as the layout has side by side.
  template <class Layout>
  struct LaidOut {
    // Returns a block of columns of the g-th group.
    const std::byte* group(std::size_t g, std::size_t block) const {
      return numbers.data() + layout.place(g, block, tokens);
    }

    std::size_t tokens;
    Layout layout;
    UninitializedBytes numbers = {};
  };

  // Holds x of several tokens for a matrix unit.
  struct Tiles : LaidOut<TileLayout> {
    Tiles(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert(const InputPart& part);

    // Requires: x is integers.
    const CodeFactors& factors(std::size_t g, std::size_t block) const {
      return *reinterpret_cast<const CodeFactors*>(group(g, block) + layout.number_bytes(block));
    }
  };

  // Holds x of several tokens as integers of 7 or 15 bits and a sign, for panels of codes.
  struct Panels : LaidOut<CodeLayout> {
    Panels(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert(const InputPart& part);
  };

  // Returns true if each of `tokens` tokens is multiplied as one alone.
  static bool is_few(const StoredRows& matrix, std::size_t tokens, Precision precision);

  // Requires: there is at least one token.
  KernelInput(const StoredRows& matrix, std::size_t tokens, Precision precision = Precision::fast);

  bool suits(const StoredRows& matrix) const;

  // Converts tokens [first, last) of x; threads may convert different groups of kTogether at once.
  void convert(const float* x, std::size_t first, std::size_t last);
  // Converts some blocks of columns; threads may convert different blocks at once. Requires: !is_few().
  void convert(const InputPart& part);

  std::size_t tokens() const { return tokens_; }
  std::size_t groups() const { return (tokens_ + kTogether - 1) / kTogether; }  // of kTogether; the last may have fewer
  std::size_t block_columns() const;                                            // of all blocks but the last, perhaps
  std::size_t blocks() const { return (columns_ + block_columns() - 1) / block_columns(); }
  // Returns true if each token is multiplied as one alone.
  bool is_few() const { return is_few_; }

  Form form() const { return static_cast<Form>(form_.index()); }
  // Requires: x has this form.
  template <typename T>
  const T& as() const {
    return std::get<T>(form_);
  }

 private:
  using AnyForm = std::variant<Floats, Words, Bytes, Tiles, Panels>;

  static AnyForm make_form(const StoredRows& matrix, std::size_t tokens, Precision precision);

  Precision precision_;
  bool is_few_;
  std::size_t tokens_;
  std::size_t columns_;
  AnyForm form_;
};

// Says how rows are divided into calls.
struct RowsAtOnce {
  std::size_t least;  // calls that begin and end at multiples of it leave no lanes unused
  std::size_t most;   // more rows in a call gain nothing
};
// Returns the division that suits the kernel for these rows and tokens.
RowsAtOnce choose_rows_at_once(const StoredRows& matrix, std::size_t tokens, Precision precision = Precision::fast);

// Computes y[t * stride + r - first] = row r of the matrix times x[t], for r in [first, last) and every token.
// Requires: x suits the matrix.
void multiply_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y,
                   std::size_t stride);

// Multiplies with a matrix whose rows correspond to elements of x, as in [in, out] weights: y[t * columns + c] is the
// sum of x[t * rows + r] times element c of row r, for c in [first, last) and every token. Sums are always made row by
// row. Requires: `first` is a multiple of 16.
void multiply_columns(const StoredRows& matrix, std::size_t rows, std::size_t first, std::size_t last, const float* x,
                      std::size_t tokens, float* y);

// The best number of columns for one call, or a multiple of it.
inline constexpr std::size_t kColumnsAtOnce = 64;

// Adds a part of that product, of one token: sums[c] += the sum of x[r] times element c of row r, for r in [first,
// last) and all columns. It reads rows in the order of memory.
void add_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* sums);

// The best number of rows for one call: their sums are added to the others.
inline constexpr std::size_t kRowsAdded = 128;

}  // namespace poise
