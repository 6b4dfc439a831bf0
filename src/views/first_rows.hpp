// Cuts a matrix to its first rows or columns, without copying where the file allows.
#pragma once

#include <cstdint>

#include <poise/tensor.hpp>

namespace poise {

// Returns the first rows of a matrix, or elements of a vector. The result keeps the layout if each part has the rows
// one after the other, in whole bytes; else it has dense numbers. Where the file stores the rows in that form, the
// result borrows a range of the file. Throws invalid_file (without path) for parts that do not fit the shape, and what
// make_dense_numbers() throws. Requires: the tensor has at least one row, and at least `rows`.
Tensor keep_first_rows(const Tensor& tensor, std::uint64_t rows);

// Returns the first columns of a matrix. The result keeps the layout if it is dense with elements of whole bytes, or if
// blocks lie along columns; else it has dense numbers. Throws what keep_first_rows() throws. Requires: the matrix has
// at least one column, and at least `columns`.
Tensor keep_first_columns(const Tensor& matrix, std::uint64_t columns);

}  // namespace poise
