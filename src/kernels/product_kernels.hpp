// Functions that the files with kernels for products share, and the table of stored types. The table has a row with
// kernels for each way to store weights. To add a stored type, add a row and a file. Other modules include product.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/aligned_vector.hpp"
#include "kernels/code_panel.hpp"
#include "kernels/product.hpp"
#include "kernels/tiles.hpp"

namespace poise {

// Returns the form of x for products with the matrix.
KernelInput::Form choose_input_form(const StoredRows& matrix, std::size_t tokens, Precision precision);

// Asks for columns [begin, begin + count) of rows [first, last) as float32, row r at out + (r - first) * stride.
// Requires: `begin` is a multiple of 16.
struct DecodedPart {
  std::size_t first;
  std::size_t last;
  std::size_t begin;
  std::size_t count;
  float* out;
  std::size_t stride;
};

void decode_part(const StoredRows& matrix, const DecodedPart& part);

// Calls visit(rows, r, count) with rows r to r + count of [first, last) as float32, four at a time. Requires: visit()
// decodes no rows itself.
template <typename Visit>
void visit_float_rows(const StoredRows& matrix, std::size_t first, std::size_t last, Visit&& visit) {
  constexpr std::size_t kRows = 4;
  thread_local AlignedFloats decoded;
  if (decoded.size() < kRows * matrix.columns) decoded.resize(kRows * matrix.columns);
  const StoredRows rows = {
      .storage = Storage::f32, .data = reinterpret_cast<const std::byte*>(decoded.data()), .columns = matrix.columns};
  for (std::size_t r = first; r < last; r += kRows) {
    const std::size_t count = std::min(kRows, last - r);
    decode_part(matrix, {r, r + count, 0, matrix.columns, decoded.data(), matrix.columns});
    visit(rows, r, count);
  }
}

// Splits numbers into sums of bfloat16 numbers (tiles.hpp): x[i] is about parts[0][i] + parts[1][i] + ... Requires:
// there is at least one part, and count is a multiple of 32. Truncates numbers that bfloat16 would round to infinity;
// for infinities and NaN, all parts but the first are zero.
void split_floats(const float* x, std::size_t count, std::span<std::uint16_t* const> parts);

// At most this many rows are multiplied together in float32 products of few tokens. With more tokens, x does not fit
// the first-level cache, so each block of x is multiplied by more rows while it is there.
inline constexpr std::size_t kRowsOfFew = 16;  // for more than two tokens
constexpr std::size_t choose_rows_for_few_tokens(std::size_t tokens) { return tokens <= 2 ? 4 : kRowsOfFew; }

// Returns how many rows a matrix unit multiplies together, one block of columns after the other. Their sums, and the x
// of the block, then stay in the second-level cache. With few tokens, rows are instead read from their beginning to
// their end.
constexpr std::size_t choose_tiled_rows(std::size_t tokens) {
  return tokens <= 2 * kTileTokens ? kTileRows : 8 * kTileRows;
}

// multiply_panels() converts this many rows to float32 at a time.
inline constexpr std::size_t kPanelRows = 60;

// Each of these does the work of multiply_rows() for several tokens in one form of x.
void multiply_panels(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Floats& x,
                     float* y, std::size_t stride);
void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Tiles& x,
                         float* y, std::size_t stride);
void multiply_code_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Panels& x,
                        float* y, std::size_t stride);

// Refers to the float32 x of a few tokens.
struct FewFloats {
  const float* x;  // [tokens, columns]
  std::size_t tokens;
};

// Does the work of multiply_rows() for few tokens.
template <class Input>
using MultiplyFew = void (*)(const StoredRows& matrix, std::size_t first, std::size_t last, const Input& x, float* y,
                             std::size_t stride);

// Asks for columns [begin, begin + count) of a row as sums of bfloat16 numbers: the i-th number is parts[0][i] +
// parts[1][i] + ... Requires: `begin` is a multiple of 16.
struct SplitRow {
  std::size_t row;
  std::size_t begin;
  std::size_t count;
  std::uint16_t* const* parts;
};

// Lists the kernels of a stored type, for one kind of processor.
struct TypeKernels {
  void (*decode)(const StoredRows& matrix, const DecodedPart& part) = nullptr;
  // Multiplies float32 x, and reads the stored bytes directly. Null: rows are converted to float32 first.
  MultiplyFew<FewFloats> multiply_floats = nullptr;
  // Does the work of add_rows() of product.hpp, and reads the stored bytes directly. Null: rows are converted to
  // float32 first.
  void (*add_rows)(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x,
                   float* sums) = nullptr;
  // Each function multiplies x as integers. At most one of them is set; null means that it is not supported.
  MultiplyFew<KernelInput::Words> multiply_words = nullptr;
  MultiplyFew<KernelInput::Bytes> multiply_bytes = nullptr;
  std::size_t least_group = 0;  // the smallest group size that these two support
  CodeForm panels = {};         // describes panels of the type's codes, for many tokens
  // Splits a row into as many parts as the type's TileForm has, and reads the stored bytes directly. Null: numbers are
  // converted to float32 first.
  void (*split)(const StoredRows& matrix, const SplitRow& row) = nullptr;
};

// Chooses the form of weights on a matrix unit (tiles.hpp).
enum class TileForm : std::uint8_t {
  rounded,      // one bfloat16 number, and so is x; the codes are less precise than that
  two_parts,    // a sum of two bfloat16 numbers, and so is x
  three_parts,  // a sum of three, and so is x: float32 numbers keep all their bits
  codes,        // codes that share one scale; x is integers. two_parts if rows cannot become panels
  stored,       // bfloat16 numbers as they are stored; x has two parts
};

struct StoredTypeRow {
  std::size_t bits = 0;     // bits of an element, without separate scales; 0 for blocks (see BlockType)
  std::size_t planes = 0;   // codes in a 16-bit word; 0: not codes
  std::size_t x_group = 0;  // columns in each sum of integer x, for blocks; 0 if products need no sums
  TileForm tiles = TileForm::rounded;
  const TypeKernels& (*kernels)() = nullptr;  // returns the kernels for the running processor
  std::size_t scale_bytes = 0;                // bytes of a separate scale
};

const StoredTypeRow& find_stored_type(const StoredRows& matrix);

// Returns the row of a type of ggml's blocks, from the table in stored_blocks.cpp.
const StoredTypeRow& find_stored_block_type(const BlockType& type);

// Defines name(), which returns the kernels for the running processor, from a function for each kind of processor.
#define POISE_EXPORT_KERNELS(name, Kernels) \
  HWY_EXPORT(Kernels);                      \
  const TypeKernels& name() { return HWY_DYNAMIC_DISPATCH(Kernels)(); }

// Each function returns the kernels of a stored type for the running processor. The second declaration lists ggml's
// block types.
using GetKernels = const TypeKernels&();
GetKernels f32_kernels, f16_kernels, bf16_kernels, i8_kernels, u8_kernels, i4_kernels, u4_kernels, i4_bytes_kernels,
    u4_bytes_kernels, group8_kernels, group4_kernels, mx4_kernels, scaled8_kernels, scaled4_kernels, codebook4_kernels,
    scaled_f8_e4m3_kernels, scaled_f8_e5m2_kernels, by_column8_kernels, by_column4_kernels;
GetKernels q4_0_kernels, q4_1_kernels, q5_0_kernels, q5_1_kernels, q8_0_kernels, iq4_nl_kernels, iq4_xs_kernels,
    mxfp4_kernels, nvfp4_kernels, q1_0_kernels, q2_0_kernels, tq1_0_kernels, tq2_0_kernels, iq1_s_kernels,
    iq1_m_kernels, iq2_xxs_kernels, iq2_xs_kernels, iq2_s_kernels, iq3_xxs_kernels, iq3_s_kernels, q2_k_kernels,
    q3_k_kernels, q4_k_kernels, q5_k_kernels, q6_k_kernels, q8_k_kernels;

// Decodes with BlockType::decode. This is the fallback of block types without kernels.
void decode_blocks(const StoredRows& matrix, const DecodedPart& part);

}  // namespace poise
