// Sparse tensors: compressed sparse rows (values, indices, indptr) and coordinate lists (values, coords).
//
//   csr   rank 2; row r has the elements indptr[r] .. indptr[r + 1]; element i lies in column indices[i]
//   coo   element i lies at (coords[i], coords[nnz + i], coords[2 nnz + i], ...): all of dimension 0 first
//
// Indices are of any integer type. No element may stand twice.
#pragma once

#include <optional>
#include <string>

#include <poise/tensor.hpp>

namespace poise {

// What is wrong with the parts, types or sizes of a sparse tensor, in one sentence; nothing when they fit its shape. Looks
// at no data. Requires: Layout::sparse_csr or sparse_coo, and a shape whose product fits 64 bits.
std::optional<std::string> sparse_structure_fault(const Tensor& tensor);

}  // namespace poise
