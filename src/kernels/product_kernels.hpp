// Functions that the files of product kernels share; others use product.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/aligned_vector.hpp"
#include "kernels/product.hpp"
#include "kernels/tiles.hpp"

namespace poise {

// Returns how products take x.
KernelInput::Form input_form(const StoredRows& matrix, std::size_t tokens, Precision precision);

// How a token's x becomes integers.
struct IntegerLayout {
  std::size_t columns = 0;
  std::size_t planes = 0;
  std::size_t group_size = 0;  // 0: none
};

// The output; see KernelInput.
struct IntegerToken {
  std::int16_t* integers = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
};

void take_integers(const float* x, const IntegerLayout& layout, const IntegerToken& token);

// The same of integers of 8 bits.
struct ByteToken {
  std::int8_t* integers = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
  float* block_scales = nullptr;
  float* block_sums = nullptr;
  std::int16_t* integer_sums = nullptr;
};

// Requires: `columns` is a multiple of KernelInput::kByteBlock; groups are of 16 columns or of 32.
void take_bytes(const float* x, std::size_t columns, std::size_t group_size, const ByteToken& token);

// Columns [begin, begin + count) of rows [first, last) as float32, row r at out + (r - first) * stride. Requires:
// `begin` is a multiple of 16.
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
void for_float_rows(const StoredRows& matrix, std::size_t first, std::size_t last, Visit&& visit) {
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

// Numbers as sums of bfloat16 numbers (tiles.hpp): x[i] is about parts[0][i] + parts[1][i] + ... Requires: there are
// parts, and count is a multiple of 32. Truncates numbers that bfloat16 would round to infinity; for infinities and
// NaN, all parts but the first are zero.
void split_floats(const float* x, std::size_t count, std::span<std::uint16_t* const> parts);

// Rows that products of few tokens in float32 take together: the more tokens, the more rows a block of x meets.
inline constexpr std::size_t kRowsOfFew = 16;  // at most
constexpr std::size_t rows_of_few(std::size_t tokens) { return tokens <= 2 ? 4 : kRowsOfFew; }

// Returns how many rows products on a matrix unit take together: their sums stay near while their weights meet all
// tokens, a block of columns after the other, and x of a block, which all of them take, stays in the second cache. With
// few tokens rows are read from their beginning to their end.
constexpr std::size_t tiled_rows_together(std::size_t tokens) {
  return tokens <= 2 * kTileTokens ? kTileRows : 8 * kTileRows;
}

// Rows that products of several tokens convert to float32 at a time.
inline constexpr std::size_t kPanelRows = 60;

// multiply_rows() of several tokens, for each form of x.
void multiply_panels(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Floats& x,
                     float* y, std::size_t stride);
void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Tiles& x,
                         float* y, std::size_t stride);
void multiply_code_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Panels& x,
                        float* y, std::size_t stride);

}  // namespace poise
