// The rules of sparse tensors: what can be said from sizes, and what needs a look at every index.
#include "views/sparse.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "numeric/integers.hpp"
#include "views/loaded_blob.hpp"

namespace poise {
namespace {

using Fault = std::optional<std::string>;

Fault parts_fault(const Tensor& tensor, std::initializer_list<std::string_view> roles) {
  for (const std::string_view role : roles) {
    if (tensor.part(role) == nullptr) return fmt::format("{} needs the part {}", to_string(tensor.layout), role);
  }
  if (tensor.parts.size() != roles.size())
    return fmt::format("{} has {} parts, found {}", to_string(tensor.layout), roles.size(), tensor.parts.size());
  return std::nullopt;
}

Fault index_fault(const Part& part) {
  if (is_integer(part.dtype)) return std::nullopt;
  return fmt::format("{}: expected an integer type, found {}", part.role, part.type_name());
}

Fault size_fault(const Part& part, std::optional<std::uint64_t> expected) {
  if (expected == part.blob->size()) return std::nullopt;
  if (!expected) return fmt::format("{}: its size overflows", part.role);
  return fmt::format("{}: expected {} bytes, found {}", part.role, *expected, part.blob->size());
}

Fault values_fault(const Tensor& tensor, std::uint64_t nonzeros) {
  const Part& values = tensor.require("values");
  if (values.dtype == DType::unknown) return std::nullopt;
  return size_fault(values, packed_bytes(values.dtype, nonzeros));
}

std::uint64_t index_bytes(const Part& part) { return info(part.dtype).bits / 8; }

Fault csr_fault(const Tensor& tensor) {
  if (tensor.shape.size() != 2)
    return fmt::format("compressed sparse rows have rank 2, found shape {}", to_string(tensor.shape));
  if (auto fault = parts_fault(tensor, {"values", "indices", "indptr"})) return fault;
  const Part& indices = tensor.require("indices");
  const Part& indptr = tensor.require("indptr");
  if (auto fault = index_fault(indices)) return fault;
  if (auto fault = index_fault(indptr)) return fault;
  const auto pointers = checked_add(tensor.shape[0], 1);
  if (auto fault = size_fault(indptr, pointers ? checked_mul(*pointers, index_bytes(indptr)) : std::nullopt))
    return fault;
  const std::uint64_t width = index_bytes(indices);
  if (indices.blob->size() % width != 0)
    return fmt::format("indices: {} bytes are no whole number of {}", indices.blob->size(), indices.type_name());
  return values_fault(tensor, indices.blob->size() / width);
}

Fault coo_fault(const Tensor& tensor) {
  if (tensor.shape.empty()) return "a coordinate list has rank 1 or more";
  if (auto fault = parts_fault(tensor, {"values", "coords"})) return fault;
  const Part& coords = tensor.require("coords");
  if (auto fault = index_fault(coords)) return fault;
  const std::uint64_t width = index_bytes(coords) * tensor.shape.size();
  if (coords.blob->size() % width != 0) {
    return fmt::format("coords: {} bytes are no whole number of coordinates of rank {}", coords.blob->size(),
                       tensor.shape.size());
  }
  return values_fault(tensor, coords.blob->size() / width);
}

// `problem` begins with the role of the part that is meant, if one is.
[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  const Part* const part = tensor.part(problem.substr(0, problem.find(':')));
  auto at = part != nullptr ? part->blob->stored() : std::nullopt;
  for (const Part& any : tensor.parts) at = at ? at : any.blob->stored();
  std::string message = fmt::format("tensor {}: {}", tensor.name, problem);
  if (at) throw Error(ErrorKind::invalid_file, std::move(message), at->source->name(), at->offset);
  throw Error(ErrorKind::invalid_file, std::move(message));
}

// The columns of one row. Those that do not ascend are sorted, to see whether one comes twice.
template <typename Column>
void check_row(const Tensor& tensor, const LoadedBlob& indices, std::uint64_t row, std::uint64_t begin,
               std::uint64_t end, SparseRules rules) {
  const std::uint64_t columns = tensor.shape[1];
  bool ascending = true;
  for (std::uint64_t i = begin; i < end; ++i) {
    const Column column = indices.at<Column>(i);
    if (std::cmp_less(column, 0) || std::cmp_greater_equal(column, columns)) {
      fail(tensor, fmt::format("indices: element {} in row {} is in column {}, there are {}", i, row, column, columns));
    }
    if (i == begin || indices.at<Column>(i - 1) < column) continue;
    if (indices.at<Column>(i - 1) == column)
      fail(tensor, fmt::format("indices: column {} comes twice in row {}", column, row));
    if (rules == SparseRules::ascending)
      fail(tensor, fmt::format("indices: the columns of row {} do not ascend at element {}", row, i));
    ascending = false;
  }
  if (ascending) return;
  std::vector<Column> sorted;
  for (std::uint64_t i = begin; i < end; ++i) sorted.push_back(indices.at<Column>(i));
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) fail(tensor, fmt::format("indices: column {} comes twice in row {}", *twice, row));
}

void validate_csr(const Tensor& tensor, SparseRules rules) {
  const Part& indices_part = tensor.require("indices");
  const Part& indptr_part = tensor.require("indptr");
  const LoadedBlob indices(indices_part.blob);
  const LoadedBlob indptr(indptr_part.blob);
  const std::uint64_t nonzeros = indices.bytes().size() / index_bytes(indices_part);
  visit_integer(indptr_part.dtype, [&](auto pointer_zero) {
    using Pointer = decltype(pointer_zero);
    if (indptr.at<Pointer>(0) != 0)
      fail(tensor, fmt::format("indptr: it begins with {}, expected 0", indptr.at<Pointer>(0)));
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      const Pointer begin = indptr.at<Pointer>(row);
      const Pointer end = indptr.at<Pointer>(row + 1);
      if (end < begin) fail(tensor, fmt::format("indptr: it falls from {} to {} after row {}", begin, end, row));
      if (std::cmp_greater(end, nonzeros))
        fail(tensor, fmt::format("indptr: row {} ends at element {}, there are {}", row, end, nonzeros));
      visit_integer(indices_part.dtype, [&](auto column_zero) {
        check_row<decltype(column_zero)>(tensor, indices, row, static_cast<std::uint64_t>(begin),
                                         static_cast<std::uint64_t>(end), rules);
      });
    }
    const Pointer last = indptr.at<Pointer>(tensor.shape[0]);
    if (std::cmp_not_equal(last, nonzeros))
      fail(tensor, fmt::format("indptr: it ends with {}, expected {}, the number of elements", last, nonzeros));
  });
}

void validate_coo(const Tensor& tensor) {
  const Part& part = tensor.require("coords");
  const LoadedBlob coords(part.blob);
  const std::size_t rank = tensor.shape.size();
  const std::uint64_t nonzeros = coords.bytes().size() / index_bytes(part) / rank;
  visit_integer(part.dtype, [&](auto zero) {
    using Coordinate = decltype(zero);
    std::vector<std::uint64_t> cells;  // in row-major numbering; kept only when they do not ascend
    bool ascending = true;
    std::uint64_t previous = 0;
    const auto cell = [&](std::uint64_t i) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        const Coordinate coordinate = coords.at<Coordinate>(d * nonzeros + i);
        if (std::cmp_less(coordinate, 0) || std::cmp_greater_equal(coordinate, tensor.shape[d])) {
          fail(tensor, fmt::format("coords: element {} is at {} in dimension {}, which has {}", i, coordinate, d,
                                   tensor.shape[d]));
        }
        number = number * tensor.shape[d] + static_cast<std::uint64_t>(coordinate);
      }
      return number;
    };
    for (std::uint64_t i = 0; i < nonzeros; ++i) {
      const std::uint64_t number = cell(i);
      ascending = ascending && (i == 0 || previous < number);
      previous = number;
    }
    if (ascending) return;
    for (std::uint64_t i = 0; i < nonzeros; ++i) cells.push_back(cell(i));
    std::ranges::sort(cells);
    const auto twice = std::ranges::adjacent_find(cells);
    if (twice != cells.end()) fail(tensor, fmt::format("coords: cell {} comes twice, counted row by row", *twice));
  });
}

class WidenedIndices final : public Blob {
 public:
  WidenedIndices(std::string name, BlobPtr blob, DType from)
      : name_(std::move(name)), blob_(std::move(blob)), from_(from), width_(info(from).bits / 8) {}

  std::uint64_t size() const override { return blob_->size() / width_ * sizeof(std::uint64_t); }
  bool seekable() const override { return blob_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const std::uint64_t first = offset / sizeof(std::uint64_t);
    const std::uint64_t last = (offset + out.size() - 1) / sizeof(std::uint64_t);
    std::vector<std::byte> narrow(static_cast<std::size_t>((last - first + 1) * width_));
    blob_->read(first * width_, narrow);
    std::vector<std::byte> wide(static_cast<std::size_t>((last - first + 1) * sizeof(std::uint64_t)));
    visit_integer(from_, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < last - first + 1; ++i) {
        const T index = load_le<T>(narrow.data() + i * sizeof(T));
        if (std::cmp_less(index, 0))
          throw Error(ErrorKind::invalid_file, fmt::format("{}: index {} is {}", name_, first + i, index));
        store_le(wide.data() + i * sizeof(std::uint64_t), static_cast<std::uint64_t>(index));
      }
    });
    std::copy_n(wide.begin() + static_cast<std::ptrdiff_t>(offset - first * sizeof(std::uint64_t)), out.size(),
                out.begin());
  }

 private:
  std::string name_;
  BlobPtr blob_;
  DType from_;
  std::uint64_t width_;
};

}  // namespace

bool is_sparse(const Tensor& tensor) {
  return tensor.layout == Layout::sparse_csr || tensor.layout == Layout::sparse_coo;
}

std::optional<std::string> sparse_structure_fault(const Tensor& tensor) {
  return tensor.layout == Layout::sparse_csr ? csr_fault(tensor) : coo_fault(tensor);
}

std::uint64_t stored_elements(const Tensor& tensor) {
  if (tensor.layout == Layout::sparse_csr)
    return tensor.require("indices").blob->size() / index_bytes(tensor.require("indices"));
  const Part& coords = tensor.require("coords");
  return coords.blob->size() / index_bytes(coords) / tensor.shape.size();
}

SparseRules sparse_rules(const Tensor& tensor) {
  return tensor.layout.is_ascending() ? SparseRules::ascending : SparseRules::any_order;
}

void validate_sparse(const Tensor& tensor, SparseRules rules) {
  if (const auto fault = sparse_structure_fault(tensor)) fail(tensor, *fault);
  return tensor.layout == Layout::sparse_csr ? validate_csr(tensor, rules) : validate_coo(tensor);
}

BlobPtr widen_indices(const std::string& tensor, const Part& part) {
  return std::make_shared<WidenedIndices>(fmt::format("tensor {}: {}", tensor, part.role), part.blob, part.dtype);
}

}  // namespace poise
