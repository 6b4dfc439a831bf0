// Functions that the files of product kernels share, and the table of stored types: a row for each, with the kernels
// for weights stored that way. A new type is a row and a file. Others use product.hpp.
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

// Returns how products take x.
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
// there are parts, and count is a multiple of 32. Truncates numbers that bfloat16 would round to infinity; for
// infinities and NaN, all parts but the first are zero.
void split_floats(const float* x, std::size_t count, std::span<std::uint16_t* const> parts);

// Rows that products of few tokens in float32 take together: the more tokens, the more rows a block of x meets.
inline constexpr std::size_t kRowsOfFew = 16;  // at most
constexpr std::size_t count_rows_of_few(std::size_t tokens) { return tokens <= 2 ? 4 : kRowsOfFew; }

// Returns how many rows products on a matrix unit take together: their sums stay near while their weights meet all
// tokens, a block of columns after the other, and x of a block, which all of them take, stays in the second cache. With
// few tokens rows are read from their beginning to their end.
constexpr std::size_t count_tiled_rows(std::size_t tokens) {
  return tokens <= 2 * kTileTokens ? kTileRows : 8 * kTileRows;
}

// Rows that products of several tokens convert to float32 at a time.
inline constexpr std::size_t kPanelRows = 60;

// Do the work of multiply_rows() for several tokens, one for each form of x.
void multiply_panels(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Floats& x,
                     float* y, std::size_t stride);
void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Tiles& x,
                         float* y, std::size_t stride);
void multiply_code_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Panels& x,
                        float* y, std::size_t stride);

// Refers to x of a few tokens, unchanged.
struct FewFloats {
  const float* x;  // [tokens, columns]
  std::size_t tokens;
};

// Does the work of multiply_rows() for few tokens.
template <class Input>
using MultiplyFew = void (*)(const StoredRows& matrix, std::size_t first, std::size_t last, const Input& x, float* y,
                             std::size_t stride);

// Asks for columns [begin, begin + count) of a row as bfloat16 numbers: parts[p][i] are those whose sum is the i-th
// number. Requires: `begin` is a multiple of 16.
struct SplitRow {
  std::size_t row;
  std::size_t begin;
  std::size_t count;
  std::uint16_t* const* parts;
};

// Lists the kernels of a stored type, for one kind of processor.
struct TypeKernels {
  void (*decode)(const StoredRows& matrix, const DecodedPart& part) = nullptr;
  // Takes x as floats, and reads the stored bytes directly. Null: rows become float32 first.
  MultiplyFew<FewFloats> multiply_floats = nullptr;
  // Does the work of add_weighted_rows() for these rows, and reads the stored bytes directly. Null: rows become float32
  // first.
  void (*add_rows)(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x,
                   float* sums) = nullptr;
  // Take x as integers; at most one of these is set. Null: not supported.
  MultiplyFew<KernelInput::Words> multiply_words = nullptr;
  MultiplyFew<KernelInput::Bytes> multiply_bytes = nullptr;
  std::size_t least_group = 0;  // the smallest group that these take
  CodeForm panels = {};         // how many tokens meet it as codes
  // Makes as many parts as the type's TileForm has, directly from the stored bytes. Null: numbers become float32 first.
  void (*split)(const StoredRows& matrix, const SplitRow& row) = nullptr;
};

// Says which form weights take for a matrix unit (tiles.hpp).
enum class TileForm : std::uint8_t {
  rounded,      // to one bfloat16 number, x too: their codes have rounded them more
  two_parts,    // as sums of two bfloat16 numbers, x too
  three_parts,  // as sums of three, x too: float32 numbers keep all their bits
  codes,        // codes with a scale for all meet integers of x. Rows that become no panels: two_parts
  stored,       // as the bfloat16 numbers that they are; x has two parts
};

struct StoredTypeRow {
  std::size_t bits = 0;     // of an element, without separate scales; 0: for blocks, whose type has the size
  std::size_t planes = 0;   // codes in a 16-bit word; 0: not codes
  std::size_t x_group = 0;  // of blocks: columns in a sum of x as integers; 0: none
  TileForm tiles = TileForm::rounded;
  const TypeKernels& (*kernels)() = nullptr;  // for the running processor
  std::size_t scale_bytes = 0;                // of a separate scale
};

const StoredTypeRow& find_stored_type(const StoredRows& matrix);

// Returns the same for blocks of a type; stored_blocks.cpp has their table.
const StoredTypeRow& find_stored_block_type(const BlockType& type);

// Defines name(), which returns the kernels for the running processor, from a function for each kind of processor.
#define POISE_EXPORT_KERNELS(name, Kernels) \
  HWY_EXPORT(Kernels);                      \
  const TypeKernels& name() { return HWY_DYNAMIC_DISPATCH(Kernels)(); }

// Return the kernels for the running processor: of the plain types, and of ggml's blocks.
using GetKernels = const TypeKernels&();
GetKernels f32_kernels, f16_kernels, bf16_kernels, i8_kernels, u8_kernels, i4_kernels, u4_kernels, i4_bytes_kernels,
    u4_bytes_kernels, group8_kernels, group4_kernels, mx4_kernels, scaled8_kernels, scaled4_kernels, codebook4_kernels,
    scaled_f8_e4m3_kernels, scaled_f8_e5m2_kernels, by_column8_kernels, by_column4_kernels;
GetKernels q4_0_kernels, q4_1_kernels, q5_0_kernels, q5_1_kernels, q8_0_kernels, iq4_nl_kernels, iq4_xs_kernels,
    mxfp4_kernels, nvfp4_kernels, q1_0_kernels, q2_0_kernels, tq1_0_kernels, tq2_0_kernels, iq1_s_kernels,
    iq1_m_kernels, iq2_xxs_kernels, iq2_xs_kernels, iq2_s_kernels, iq3_xxs_kernels, iq3_s_kernels, q2_k_kernels,
    q3_k_kernels, q4_k_kernels, q5_k_kernels, q6_k_kernels, q8_k_kernels;

// Decodes with the block type's own decoder.
void decode_blocks(const StoredRows& matrix, const DecodedPart& part);

}  // namespace poise
