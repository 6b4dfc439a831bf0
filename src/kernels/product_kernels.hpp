// Declares functions that the kernels for products share, and the table of stored types, which has a row with kernels
// for each way to store weights. To add a stored type, add a value of Storage, a row in stored_type.cpp (for ggml's
// blocks only a row in stored_blocks.cpp), and a file with the kernels. Other modules include product.hpp.
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

// Describes the part of a matrix to decode: columns [begin, begin + count) of rows [first, last). Row r goes to out +
// (r - first) * stride. Requires: `begin` is a multiple of 16.
struct DecodedPart {
  std::size_t first;
  std::size_t last;
  std::size_t begin;
  std::size_t count;
  float* out;
  std::size_t stride;
};

void decode_part(const StoredRows& matrix, const DecodedPart& part);

// Decodes rows [first, last) to float32, at most four at a time, and calls visit(rows, r, count) each time: row i of
// `rows` is row r + i of the matrix. Requires: visit() does not call visit_float_rows(), which may overwrite `rows`.
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

// Float32 products of few tokens multiply this number of rows together: each block of x is multiplied by all of them
// while it is in the first-level cache. The x of one or two tokens usually stays in this cache anyway, so these tokens
// are multiplied by only four rows.
inline constexpr std::size_t kRowsOfFew = 16;  // for more than two tokens
constexpr std::size_t choose_rows_for_few_tokens(std::size_t tokens) { return tokens <= 2 ? 4 : kRowsOfFew; }

// Returns how many rows are multiplied together on a matrix unit: all by one block of columns, then all by the next
// block. Their sums, and the x of the block, then stay in the second-level cache. Up to 2 * kTileTokens tokens, only
// one panel of rows is multiplied at a time, so that its rows are read from beginning to end.
constexpr std::size_t choose_tiled_rows(std::size_t tokens) {
  return tokens <= 2 * kTileTokens ? kTileRows : 8 * kTileRows;
}

// multiply_panels() converts this many rows to float32 at a time.
inline constexpr std::size_t kPanelRows = 60;

// Each function does the work of multiply_rows() for many tokens in one form of x.
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

// Functions of this type do the work of multiply_rows() for few tokens.
template <class Input>
using MultiplyFew = void (*)(const StoredRows& matrix, std::size_t first, std::size_t last, const Input& x, float* y,
                             std::size_t stride);

// Describes the part of a row to split into sums of bfloat16 numbers: columns [begin, begin + count). Column begin + i
// becomes parts[0][i] + parts[1][i] + ... Requires: `begin` is a multiple of 16.
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
  // Each function multiplies x as integers. At most one of the two is set. If both are null, x stays float32.
  MultiplyFew<KernelInput::Words> multiply_words = nullptr;
  MultiplyFew<KernelInput::Bytes> multiply_bytes = nullptr;
  std::size_t least_group = 0;  // the smallest group size that these two support
  CodeForm panels = {};         // describes how the type becomes panels, for many tokens
  // Splits a row into as many parts as the type's TileForm has, and reads the stored bytes directly. Null: numbers are
  // converted to float32 first.
  void (*split)(const StoredRows& matrix, const SplitRow& row) = nullptr;
};

// Chooses the form of weights on a matrix unit (tiles.hpp).
enum class TileForm : std::uint8_t {
  rounded,      // one bfloat16 number, and so is x; the codes' own error is larger
  two_parts,    // a sum of two bfloat16 numbers, and so is x
  three_parts,  // a sum of three bfloat16 numbers, and so is x: float32 numbers keep all their bits
  codes,        // codes that share one scale; x is integers. two_parts if rows cannot become panels
  stored,       // bfloat16 numbers as they are stored; x has two parts
};

struct StoredTypeRow {
  std::size_t bits = 0;     // bits of an element, without separate scales; 0 for blocks (see BlockType)
  std::size_t planes = 0;   // KernelInput::Words::planes, if the type multiplies Words
  std::size_t x_group = 0;  // columns in each sum of integer x, for blocks; 0 if products need no sums
  TileForm tiles = TileForm::rounded;
  const TypeKernels& (*kernels)() = nullptr;  // returns the kernels for the running processor
  std::size_t scale_bytes = 0;                // bytes of a separate scale; 0 if the type has none
};

const StoredTypeRow& find_stored_type(const StoredRows& matrix);

// Returns the row of a type of ggml's blocks, from the table in stored_blocks.cpp.
const StoredTypeRow& find_stored_block_type(const BlockType& type);

// Defines name(), which calls the version of Kernels() that is compiled for the running processor.
#define POISE_EXPORT_KERNELS(name, Kernels) \
  HWY_EXPORT(Kernels);                      \
  const TypeKernels& name() { return HWY_DYNAMIC_DISPATCH(Kernels)(); }

// Each function returns the kernels of a stored type for the running processor. The second declaration lists ggml's
// block types.
using GetKernels = const TypeKernels&();
GetKernels get_f32_kernels, get_f16_kernels, get_bf16_kernels, get_i8_kernels, get_u8_kernels, get_i4_kernels,
    get_u4_kernels, get_i4_bytes_kernels, get_u4_bytes_kernels, get_group8_kernels, get_group4_kernels, get_mx4_kernels,
    get_scaled8_kernels, get_scaled4_kernels, get_codebook4_kernels, get_scaled_f8_e4m3_kernels,
    get_scaled_f8_e5m2_kernels, get_by_column8_kernels, get_by_column4_kernels;
GetKernels get_q4_0_kernels, get_q4_1_kernels, get_q5_0_kernels, get_q5_1_kernels, get_q8_0_kernels, get_iq4_nl_kernels,
    get_iq4_xs_kernels, get_mxfp4_kernels, get_nvfp4_kernels, get_q1_0_kernels, get_q2_0_kernels, get_tq1_0_kernels,
    get_tq2_0_kernels, get_iq1_s_kernels, get_iq1_m_kernels, get_iq2_xxs_kernels, get_iq2_xs_kernels, get_iq2_s_kernels,
    get_iq3_xxs_kernels, get_iq3_s_kernels, get_q2_k_kernels, get_q3_k_kernels, get_q4_k_kernels, get_q5_k_kernels,
    get_q6_k_kernels, get_q8_k_kernels;

// Decodes with BlockType::decode, for all block types.
void decode_blocks(const StoredRows& matrix, const DecodedPart& part);

}  // namespace poise
