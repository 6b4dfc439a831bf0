// The stored elements of sparse tensors, by cell.
#include <algorithm>

#include "numeric/integers.hpp"
#include "views/loaded_blob.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

void load_rows(const Tensor& tensor, std::vector<SparseEntry>& entries) {
  const Part& indices_part = tensor.require("indices");
  const LoadedBlob indices(indices_part.blob);
  const Part& indptr_part = tensor.require("indptr");
  const LoadedBlob indptr(indptr_part.blob);
  visit_integer(indices_part.dtype, [&](auto zero) {
    using Column = decltype(zero);
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      const std::uint64_t end = indptr.index_at(indptr_part.dtype, row + 1);
      for (std::uint64_t i = indptr.index_at(indptr_part.dtype, row); i < end; ++i)
        entries.push_back({row * tensor.shape[1] + indices.index_at<Column>(i), i});
    }
  });
}

void load_coordinates(const Tensor& tensor, std::vector<SparseEntry>& entries) {
  const Part& part = tensor.require("coords");
  const LoadedBlob coords(part.blob);
  visit_integer(part.dtype, [&](auto zero) {
    using Coordinate = decltype(zero);
    const std::uint64_t count = coords.bytes().size() / sizeof(Coordinate) / tensor.shape.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t cell = 0;
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        cell = cell * tensor.shape[d] + coords.index_at<Coordinate>(d * count + i);
      entries.push_back({cell, i});
    }
  });
}

}  // namespace

std::vector<SparseEntry> sparse_entries(const Tensor& tensor) {
  validate_sparse(tensor, sparse_rules(tensor));
  std::vector<SparseEntry> entries;
  if (tensor.layout == Layout::sparse_csr) {
    load_rows(tensor, entries);
  } else {
    load_coordinates(tensor, entries);
  }
  if (!std::ranges::is_sorted(entries, {}, &SparseEntry::cell)) std::ranges::sort(entries, {}, &SparseEntry::cell);
  return entries;
}

}  // namespace poise
