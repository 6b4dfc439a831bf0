// low_rank: a matrix to which the product of two thin ones is added.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// scale * left right, of [rows, rank] and [rank, columns].
struct LowRank {
  Tensor left;
  Tensor right;
  bool transposed = false;  // the transposed product is added: of [columns, rank] and [rank, rows]
  float scale = 1;
};

// `matrix` + scale * left right, as float32, computed row by row when it is read. With `transposed`, matrix + scale *
// (left right)ᵀ. Both thin matrices are kept in memory while it is read. Requires: floating-point elements, and shapes
// that fit.
BlobPtr make_low_rank_blob(const Tensor& matrix, const LowRank& change);

}  // namespace poise
