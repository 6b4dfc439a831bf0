// Reorders the rows of matrices whose outputs RoPE rotates in pairs. Files have the rows in one of two orders.
//
// A head has n rows. llama.cpp stores them in pairs, transformers in halves: row 2 j + t in pairs is row t * n / 2 + j
// in halves (t: 0 or 1).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

enum class RowOrder : std::uint8_t { pairs, halves };

// Converts the number of a row from the order in halves to that in pairs.
constexpr std::uint64_t find_row_in_pairs(std::uint64_t row, std::uint64_t head_rows) {
  const std::uint64_t half = head_rows / 2;
  const std::uint64_t at = row % head_rows;
  return row - at + at % half * 2 + at / half;
}

// Converts the number of a row from the order in pairs to that in halves.
constexpr std::uint64_t find_row_in_halves(std::uint64_t row, std::uint64_t head_rows) {
  const std::uint64_t at = row % head_rows;
  return row - at + at % 2 * (head_rows / 2) + at / 2;
}

// Returns how many rows a head has; std::nullopt if the rows do not divide into heads of an even number of rows.
std::optional<std::uint64_t> count_head_rows(std::uint64_t rows, std::uint64_t heads);

// Returns the rows in the order `to`; the blob has them in the other order. A result in halves has stored_as(), so that
// a writer can copy the rows in pairs. Requires: the blob is whole heads of `head_rows` rows of `row_bytes`; head_rows
// is even.
BlobPtr reorder_rows(BlobPtr blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrder to);

// Returns each row of `rows` with its elements in another order: element i of the result is element order[i] of the
// row. A row has `columns` elements without gaps. Computed when read. Requires: the order names columns; elements are
// of whole bytes, or of 2 or 4 bits, low bits of a byte first; the blob is whole rows, and rows are whole bytes before
// and after.
BlobPtr reorder_columns(BlobPtr rows, unsigned bits, std::uint64_t columns, std::vector<std::uint32_t> order);

// Parameters called `stack` have the shape [matrices, rows, columns], or [vectors, rows] with rows of one number.

// Returns the elements as a dense tensor of find_element_type(), or of float32 if that type is smaller than a byte.
// Throws invalid_file (without path) if they are not floating-point numbers.
Tensor make_dense_numbers(const Tensor& tensor);

// Returns the tensor itself if each row is a run of whole bytes (numbers, blocks along rows, MXFP4), else
// make_dense_numbers().
Tensor convert_to_whole_rows(const Tensor& tensor);

// select_rows(), interleave_rows() and stack_tensors() throw invalid_file (without path) for parts that do not fit the
// shape. The first two throw unsupported for rows of codes of 4 GiB or more.

// Returns every step-th row of a matrix, from `first` on, in the layout of the stack. Requires: convert_to_whole_rows()
// made the stack; its rows are a multiple of `step`.
Tensor select_rows(const Tensor& stack, std::uint64_t matrix, std::uint64_t first, std::uint64_t step);

// Interleaves the rows of each `turns` neighbouring matrices: [n * turns, rows, columns] becomes [n, rows * turns,
// columns]. The rows r of these matrices come before their rows r + 1. Requires: convert_to_whole_rows() made the
// stack; its matrices are a multiple of `turns`.
Tensor interleave_rows(const Tensor& stack, std::uint64_t turns);

// Stacks tensors to [tensors, shape...]. Numbers of one type and blocks of one type stay as they are; otherwise the
// result is dense numbers of the common type or float32. Throws what make_dense_numbers() throws. Requires: one tensor
// or more, all of the same shape.
Tensor stack_tensors(const std::vector<Tensor>& tensors);

// Joins blobs: all bytes of the first, then of the second, and so on. The result is a range of their file if they are
// contiguous there. Requires: at least one blob; their total size fits 64 bits.
BlobPtr make_joined_blob(std::vector<BlobPtr> blobs);

}  // namespace poise
