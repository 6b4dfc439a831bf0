// row_order: the rows of matrices whose outputs are rotated in pairs, in either order that files have.
//
// A head of n rows in pairs, as llama.cpp has them, has row 2 j + t where halves, as transformers has them, have row
// t * n / 2 + j (t: 0 or 1).
#pragma once

#include <cstdint>
#include <optional>

#include <poise/blob.hpp>

namespace poise {

enum class RowOrder : std::uint8_t { pairs, halves };

// The place in pairs of a row in halves.
constexpr std::uint64_t row_in_pairs(std::uint64_t row, std::uint64_t head_rows) {
  const std::uint64_t half = head_rows / 2;
  const std::uint64_t at = row % head_rows;
  return row - at + at % half * 2 + at / half;
}

// And the place in halves of a row in pairs.
constexpr std::uint64_t row_in_halves(std::uint64_t row, std::uint64_t head_rows) {
  const std::uint64_t at = row % head_rows;
  return row - at + at % 2 * (head_rows / 2) + at / 2;
}

// Rows of one head; nothing if the rows do not divide into heads of an even number of rows.
std::optional<std::uint64_t> rows_of_head(std::uint64_t rows, std::uint64_t heads);

// The rows in the order `to`, from the other one. Requires: the blob is whole heads of `head_rows` rows of `row_bytes`;
// head_rows is even.
BlobPtr reorder_rows(BlobPtr blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrder to);

// What reorder_rows() took.
struct ReorderedRows {
  BlobPtr blob;
  std::uint64_t row_bytes = 0;
  std::uint64_t head_rows = 0;
  RowOrder to = RowOrder::halves;

  // The row of `blob` that is that row in the order `to`.
  std::uint64_t source_of(std::uint64_t row) const {
    return to == RowOrder::halves ? row_in_pairs(row, head_rows) : row_in_halves(row, head_rows);
  }
};

// Nothing for a blob that reorder_rows() did not make.
std::optional<ReorderedRows> reordered_rows(const Blob& blob);

}  // namespace poise
