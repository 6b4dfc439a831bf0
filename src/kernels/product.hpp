// Multiplies a matrix of weights, in its stored form (StoredRows), by x: the input vectors of one or several tokens.
// KernelInput converts x once, for all matrices that read the same form. Highway chooses the kernels for the processor
// at run time.
//
// Weights may be at any address. On one processor, the order of a sum depends only on the stored type, on the number of
// columns, on the form of x, and on whether there are few tokens (KernelInput::is_few()) or many. So neither the thread
// nor other rows of a call change the bits of a result. Other tokens change them only by their number. Each of few
// tokens gets the bits that it gets alone, but the kernels read and unpack rows once for several tokens.
//
// By default, weights are converted to float32, and products and sums are float32. The exceptions are below. In some of
// them x is rounded to integers, with a scale for each run of columns. This changes a result by at most half a step
// (half of this scale) for each weight, times that weight.
//
// On a processor with a matrix unit, products of many tokens use tiles.hpp. The error of a product of two numbers,
// relative to the product, is then at most 2^-24 with float32 weights (float32's own rounding), 2^-17 with bfloat16
// weights, and 2^-15 with float16 weights. If all codes of a matrix share one scale, x becomes integers of 15 bits and
// a sign: half a step is max(abs(x)) / 65278 over 512 columns. If the rows of such codes are not a multiple of 32
// columns, they are multiplied like float16 weights. All other weights are rounded to bfloat16, and so is x: the error
// is at most 2^-7 (rms up to 0.25 %), and its rms is less than half of that with x of 7 bits (below). Up to
// kTokensOfPanels tokens use panels of codes (code_panel.hpp) instead, where these are faster: half a step is then
// max(abs(x)) / 65278 over at most 256 columns, or max(abs(x)) / 254 over at most 32.
//
// On other processors, and for few tokens on any processor, codes stay integers, and x becomes integers, too. (Codes
// with float32 scales become float32. For few tokens, so do codes in groups that has_integer_product() refuses.) In
// each lane of a vector, the sum of products with codes that share a scale is exact. x has 15 bits and a sign. It has 7
// bits and a sign for blocks of codes of six bits and fewer, for mx4, and for many tokens with any codes of four bits:
// an instruction then makes twice as many products, and the error is far less than that of such codes. For few tokens
// half a step is max(abs(x)) / 65534 over 1024 columns, or max(abs(x)) / 254 over 32. For many tokens it is max(abs(x))
// / 65278 over at most 128 columns, or max(abs(x)) / 254 over at most 32. Many tokens need a type with panels
// (code_panel.hpp), rows of whole blocks (CodeForm::elements), and AVX2 or better; x of 15 bits, iq4_nl and iq4_xs need
// AVX-512 VNNI. Otherwise weights become float32.
//
// With AVX-512 VNNI but no matrix unit, many tokens and at least kLeastRoundedColumns columns, float16 and bfloat16
// weights become integers, as x does. Half a step of x, or of the weights, is the largest magnitude / 11584 over at
// most 64 columns. A result changes by at most about half a step of x for each weight, times that weight, and half a
// step of the weights for each x, times that x. For normally distributed numbers the rms error of results is 0.0002,
// less than the 0.0004 of llama.cpp's float16 and the 0.0023 of one bfloat16 part each. Integers need half as many
// instructions as float32 numbers.
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

// Returns true if products with few tokens use x as integers, unless Precision is exact. The stored type must have
// kernels for integers, and these must support the size of its groups.
bool has_integer_product(const StoredRows& matrix);

// Chooses how a product is computed, and so how it is rounded.
enum class Precision : std::uint8_t {
  fast,   // as the beginning of this file describes
  exact,  // weights, x and sums are float32, for any storage and processor
  apart,  // each of at most KernelInput::kFewTokens tokens is multiplied as `fast` multiplies a single one
};

// Holds x [tokens, columns], converted to the form that a product reads. All matrices with the same storage, type of
// blocks, columns and group size read the same form.
class KernelInput {
 public:
  enum class Form : std::uint8_t { floats, words, bytes, tiles, panels };  // indices in AnyForm
  static constexpr std::size_t kFloatBlock = 256;
  static constexpr std::size_t kTogether = 32;  // tokens whose numbers are interleaved
  static constexpr std::size_t kIntegerBlock = 1024;
  static constexpr std::size_t kByteBlock = 32;
  static constexpr std::size_t kPadding = 128;  // the integers of Words are padded with zeros to a multiple of it

  // With up to kFewTokens tokens, kernels unpack weights while they multiply them. With more tokens it is faster to
  // unpack a panel of weights first. On a matrix unit this is already faster above kFewTokensWithTiles tokens. Panels
  // of codes are faster above kFewTokensWithPanels tokens, if AVX-512 VNNI multiplies them by x of 7 bits, or a matrix
  // unit by x of 15 bits. Up to kTokensOfPanels tokens, such panels are also faster than tiles.
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
    // Returns the x of token t, unchanged. Requires: is_few.
    const float* get_token(std::size_t t) const { return numbers.data() + t * columns; }
    // Returns a block of columns for the g-th group of tokens, [kFloatBlock, kTogether]. Zeros stand for the missing
    // columns of the last block, and for the missing tokens of the last group. Requires: !is_few.
    const float* get_group(std::size_t g, std::size_t block) const {
      return numbers.data() + (block * groups() + g) * kFloatBlock * kTogether;
    }

    std::size_t tokens;
    std::size_t columns;
    bool is_few;
    AlignedFloats numbers;
  };

  // Holds x of few tokens as integers of 15 bits and a sign. A 16-bit word of a row has `planes` codes. A block of x is
  // stored as `planes` runs, in the order in which the codes of words are extracted: the first run has columns 0,
  // planes, 2 * planes, ..., the second has columns 1, planes + 1, ...
  struct Words {
    Words(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert_token(const float* x, std::size_t t);

    std::size_t blocks() const { return (columns + kIntegerBlock - 1) / kIntegerBlock; }
    const std::int16_t* get_integers(std::size_t t, std::size_t block) const {
      return numbers.data() + (t * blocks() + block) * kIntegerBlock;
    }
    // Returns how many integers a block has, with padding.
    std::size_t count_integers(std::size_t block) const {
      const std::size_t rest = columns - block * kIntegerBlock;
      return rest > kIntegerBlock ? kIntegerBlock : (rest + kPadding - 1) / kPadding * kPadding;
    }
    // Returns the scale of a block: x is about integer * scale. It is NaN if an x of the block is not finite.
    float get_scale(std::size_t t, std::size_t block) const { return scales[t * blocks() + block]; }
    // Returns the sums of x over each group of columns, padded with zeros to sums_stride. Without groups, returns one
    // sum over all columns.
    const float* get_sums(std::size_t t) const { return sums.data() + t * sums_stride; }

    std::size_t tokens;
    std::size_t columns;
    std::size_t planes;
    std::size_t group_size;  // columns in each sum; 0: one sum over all columns
    std::size_t sums_stride;
    std::vector<std::int16_t> numbers;
    std::vector<float> scales;
    std::vector<float> sums;
  };

  // Holds x of few tokens as integers of 7 bits and a sign, in the order of columns. Each kByteBlock columns have a
  // scale.
  struct Bytes {
    Bytes(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert_token(const float* x, std::size_t t);

    const std::int8_t* get_integers(std::size_t t) const { return numbers.data() + t * columns; }
    // Each function returns a number for each group of columns: the scale of its integers, or the scale times their
    // sum. Each number is there four times, once for each of four rows.
    const float* get_scales(std::size_t t) const { return scales.data() + t * sums_stride; }
    const float* get_sums(std::size_t t) const { return sums.data() + t * sums_stride; }
    // Each function returns one number for each kByteBlock columns of a token: the scale, or the sum of x.
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

  // Holds x of many tokens in the order that `layout` describes: the blocks of columns, and in each block the groups of
  // tokens.
  template <class Layout>
  struct LaidOut {
    // Returns the x of a block of columns for the g-th group of tokens.
    const std::byte* get_group(std::size_t g, std::size_t block) const {
      return numbers.data() + layout.find_offset(g, block, tokens);
    }

    std::size_t tokens = 0;
    Layout layout = {};
    UninitializedBytes numbers = {};
  };

  // Holds x of many tokens for a matrix unit.
  struct Tiles : LaidOut<TileLayout> {
    Tiles(const StoredRows& matrix, std::size_t tokens);
    bool suits(const StoredRows& matrix) const;
    void convert(const InputPart& part);

    // Returns the factors of a group's integers. Requires: layout.parts is 0.
    const CodeFactors& get_factors(std::size_t g, std::size_t block) const {
      return *reinterpret_cast<const CodeFactors*>(get_group(g, block) + layout.count_number_bytes(block));
    }
  };

  // Holds x of many tokens as integers (PanelIntegers), for panels of codes or of rounded weights.
  struct Panels : LaidOut<CodeLayout> {
    Panels() = default;
    Panels(const StoredRows& matrix, std::size_t tokens);
    // Prepares for other x, and keeps the memory.
    void reset(const CodeLayout& new_layout, std::size_t count);
    bool suits(const StoredRows& matrix) const;
    void convert(const InputPart& part);
  };

  // Returns true if each of `tokens` tokens is multiplied like a single one.
  static bool is_few(const StoredRows& matrix, std::size_t tokens, Precision precision);

  // Chooses the form for the matrix, and allocates its memory, which convert() fills. Requires: there is at least one
  // token.
  KernelInput(const StoredRows& matrix, std::size_t tokens, Precision precision = Precision::fast);

  bool suits(const StoredRows& matrix) const;

  // Converts tokens [first, last) of x [tokens, columns]. Requires: these are whole groups of kTogether tokens, but
  // the last group of x may have fewer. Threads may convert different groups at the same time.
  void convert(const float* x, std::size_t first, std::size_t last);
  // Converts some blocks of columns, for whole groups of tokens. Threads may convert different parts at the same time.
  // Requires: !is_few().
  void convert(const InputPart& part);

  std::size_t tokens() const { return tokens_; }
  // Returns the number of groups of kTogether tokens; the last group may have fewer tokens.
  std::size_t groups() const { return (tokens_ + kTogether - 1) / kTogether; }
  // Returns the number of columns in a block; the last block may have fewer.
  std::size_t block_columns() const;

  std::size_t blocks() const { return (columns_ + block_columns() - 1) / block_columns(); }
  // Returns true if each token is multiplied like a single one.
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

// Describes how callers should divide rows among calls of multiply_rows().
struct RowsAtOnce {
  std::size_t least;  // rows that a kernel multiplies together; calls with a multiple of it waste no work
  std::size_t most;   // more rows in a call are not faster
};
// Returns how to divide the rows for the kernel that multiplies them by this number of tokens.
RowsAtOnce choose_rows_at_once(const StoredRows& matrix, std::size_t tokens, Precision precision = Precision::fast);

// Computes y[t * stride + r - first] = row r of the matrix times x[t], for r in [first, last) and every token.
// Requires: x suits the matrix.
void multiply_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y,
                   std::size_t stride);

// Computes y = x W, where W is stored as [in, out]: y[t * columns + c] is the sum over r of x[t * rows + r] * W[r][c],
// for c in [first, last) and every token. The sum is always in the order of rows. Requires: `first` is a multiple of
// 16.
void multiply_columns(const StoredRows& matrix, std::size_t rows, std::size_t first, std::size_t last, const float* x,
                      std::size_t tokens, float* y);

// Calls of multiply_columns() are fastest with a multiple of this number of columns.
inline constexpr std::size_t kColumnsAtOnce = 64;

// Adds a part of the product of multiply_columns(), for one token: sums[c] += the sum over r in [first, last) of x[r] *
// W[r][c], for all columns. Reads the rows in the order of memory.
void add_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* sums);

// Calls of add_rows() are fastest with this number of rows.
inline constexpr std::size_t kRowsAdded = 128;

}  // namespace poise
