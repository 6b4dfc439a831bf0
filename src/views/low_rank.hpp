// Adds the product of two thin matrices (LoRA) to a matrix when it is read.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// Describes the change scale * (left right). `left` is [rows, rank], `right` is [rank, columns].
struct LowRank {
  Tensor left;
  Tensor right;
  bool transposed = false;  // true: the matrices are [columns, rank] and [rank, rows], and the product is transposed
  float scale = 1;
};

// Returns matrix + scale * (left right), computed when read: as float64 for a dense matrix of that type, else as
// float32. The product is float32 in both cases. With `transposed`, the sum is matrix + scale * (left right)ᵀ. The blob
// keeps both thin matrices in memory until its last element has been read. Reading throws unsupported, naming tensor
// and element, for a sum that is not finite although all of its terms are made of finite numbers. Requires:
// floating-point elements, and shapes that fit.
BlobPtr make_low_rank_blob(const Tensor& matrix, const LowRank& change);

}  // namespace poise
