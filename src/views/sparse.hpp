// Checks and converts sparse tensors. They are compressed sparse rows (values, indices, indptr) or coordinate lists
// (values, coords).
//
//   csr   rank 2; row r holds the elements indptr[r] .. indptr[r + 1]; element i is in column indices[i]
//   coo   element i is at (coords[i], coords[nnz + i], coords[2 nnz + i], ...): all of dimension 0 first
//
// Indices have any integer type. Each cell occurs at most once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/tensor.hpp>

namespace poise {

bool is_sparse(const Tensor& tensor);

// Returns the first fault in the parts, types or sizes of a sparse tensor, as one sentence; std::nullopt when they fit
// its shape. Reads no data. Requires: Layout::sparse_csr or sparse_coo, and a shape whose product fits 64 bits.
std::optional<std::string> find_sparse_structure_fault(const Tensor& tensor);

enum class SparseRules {
  any_order,  // zTensor 1.x: the columns of a row may be in any order
  ascending,  // zt.sparse_csr/1: the columns of a row ascend
};

// Returns the rules of the tensor's layout, which its format chose.
SparseRules get_sparse_rules(const Tensor& tensor);

// Returns how many elements are stored. Requires: Layout::sparse_csr or sparse_coo, and known sizes.
std::uint64_t count_stored_elements(const Tensor& tensor);

// Checks structure and every index. Throws invalid_file naming tensor, part and element, and what reading the parts
// throws. Memory: the index parts, unless they are mapped. Unordered coordinates take 8 bytes an element more. A
// row of CSR whose columns do not ascend takes a copy of them. Requires: Layout::sparse_csr or sparse_coo.
void validate_sparse(const Tensor& tensor, SparseRules rules);

// Describes a wrong index.
struct SparseFault {
  std::string problem;  // a sentence that begins with the role of the part
  const Part* part = nullptr;
  std::uint64_t byte = 0;  // where the index begins in the part
};
struct SparseFaults {
  std::vector<SparseFault> first;
  std::uint64_t count = 0;  // the number of all faults, including those that are not in `first`
};

// Counts all faults of indices that validate_sparse() finds, and describes the first `most`. Throws what
// validate_sparse() throws for the structure, and what reading the parts throws. Takes as much memory as
// validate_sparse().
SparseFaults find_sparse_faults(const Tensor& tensor, SparseRules rules, std::size_t most);

// Names a stored element: its cell in row-major numbering, and its index among the values.
struct SparseEntry {
  std::uint64_t cell = 0;
  std::uint64_t place = 0;
};

// Returns the stored elements, sorted by cell. Throws what validate_sparse() throws. Memory: 16 bytes an element.
// Requires: Layout::sparse_csr or sparse_coo.
std::vector<SparseEntry> read_sparse_entries(const Tensor& tensor);

// Returns the same matrix with the columns of every row ascending, as zt.sparse_csr/1 requires. Throws what
// validate_sparse() throws with the tensor's own rules, and, if columns move, unsupported for values of less than a
// byte. Memory: 8 bytes an element, and, if columns move, the parts that are not mapped. Requires: Layout::sparse_csr.
Tensor sort_sparse_columns(const Tensor& tensor);

// Returns the indices in a part as u64; reading throws invalid_file, naming tensor and part, when one is negative.
// Requires: an integer type.
BlobPtr widen_indices(const std::string& tensor, const Part& part);

// Returns the elements of a sparse tensor as one row-major run of its values' type, with zeros filled in. The first
// read (the call, if there are no elements) validates the indices and throws what validate_sparse() throws; then the
// blob keeps 16 bytes for each stored element. Throws unsupported for values of less than a byte. Requires:
// Layout::sparse_csr or sparse_coo.
BlobPtr densify(const Tensor& tensor);

// Returns false for tensors that never become sparse, whatever their elements are: empty tensors, scalars, powers of
// two (f8_e8m0), and, for csr, all but matrices. Throws unsupported for elements of less than a byte. Reads no data.
bool may_become_sparse(const Tensor& dense, Layout layout);

// Returns a dense tensor as csr or coo with u64 indices. Returns std::nullopt when may_become_sparse() is false, or
// when the share of its elements that are zero is below `least_zeros` (0 to 1). An element is zero when all of its bits
// are. Reads the data once, and again for csr if the result is sparse. Reading the result's values and indices reads
// the data again. Throws unsupported for elements of less than a byte.
std::optional<Tensor> sparsify(const Tensor& dense, Layout layout, double least_zeros);

}  // namespace poise
