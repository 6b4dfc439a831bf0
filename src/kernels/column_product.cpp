// Multiplies by matrices that are stored as [in, out]: row r belongs to element r of x.
#include <algorithm>
#include <cstdint>

#include "kernels/cache_type.hpp"
#include "kernels/product_kernels.hpp"

namespace poise {
namespace {

// Returns columns [first, last) of `rows` rows from `row` on as float32. Refers to the stored numbers if they are
// aligned float32 numbers, else decodes them to `memory`.
FloatRows decode_columns(const StoredRows& matrix, std::size_t row, std::size_t rows, std::size_t first,
                         std::size_t last, AlignedFloats& memory) {
  if (matrix.storage == Storage::f32 && reinterpret_cast<std::uintptr_t>(matrix.data) % alignof(float) == 0) {
    return {reinterpret_cast<const float*>(matrix.data) + row * matrix.columns + first, matrix.columns, rows};
  }
  const std::size_t count = last - first;
  if (memory.size() < rows * count) memory.resize(rows * count);
  decode_part(matrix, {row, row + rows, first, count, memory.data(), count});
  return {memory.data(), count, rows};
}

}  // namespace

void add_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* sums) {
  if (const auto add = find_stored_type(matrix).kernels().add_rows; add != nullptr)
    return add(matrix, first, last, x, sums);
  visit_float_rows(matrix, first, last, [&](const StoredRows& rows, std::size_t r, std::size_t count) {
    add_rows(rows, 0, count, x + r, sums);
  });
}

void multiply_columns(const StoredRows& matrix, std::size_t rows, std::size_t first, std::size_t last, const float* x,
                      std::size_t tokens, float* y) {
  constexpr std::size_t kRows = 64;  // rows at a time: these stay in the cache until all tokens have used them
  thread_local AlignedFloats decoded;
  thread_local AlignedFloats sums;  // [tokens, last - first]
  const std::size_t count = last - first;
  if (count == 0) return;
  sums.assign(tokens * count, 0.0F);
  for (std::size_t r = 0; r < rows; r += kRows) {
    const FloatRows row_block = decode_columns(matrix, r, std::min(kRows, rows - r), first, last, decoded);
    add_weighted_rows({x + r, rows, tokens}, row_block, count, sums.data());
  }
  for (std::size_t t = 0; t < tokens; ++t) std::copy_n(sums.data() + t * count, count, y + t * matrix.columns + first);
}

}  // namespace poise
