// rows: tensors made of the rows of stacks, computed when they are read.
//
// A stack is [matrices, rows, columns], or [vectors, rows]: rows of one number.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/tensor.hpp>

namespace poise {

// The elements as a dense tensor of element_type(). Throws invalid_file (without path) if they are no numbers.
Tensor dense_numbers(const Tensor& tensor);

// The tensor itself if each row is a run of whole bytes (numbers, blocks along rows, MXFP4), else dense_numbers().
Tensor with_whole_rows(const Tensor& tensor);

// The functions below throw invalid_file (without path) for parts that do not fit the shape.

// Every step-th row of a matrix, from `first` on, in the layout of the stack. Requires: with_whole_rows() made the
// stack; its rows are a multiple of `step`.
Tensor every_row(const Tensor& stack, std::uint64_t matrix, std::uint64_t first, std::uint64_t step);

// [n * turns, rows, columns] as [n, rows * turns, columns]: rows of `turns` neighbours by turns. Requires:
// with_whole_rows() made the stack; its matrices are a multiple of `turns`.
Tensor interleaved(const Tensor& stack, std::uint64_t turns);

// [tensors, shape...]: of numbers or blocks, in their common layout; else dense numbers of their common type or
// float32. Throws what dense_numbers() throws. Requires: one tensor or more, all of the same shape.
Tensor stacked(const std::vector<Tensor>& tensors);

}  // namespace poise
