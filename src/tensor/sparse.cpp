#include "tensor/sparse.hpp"

#include <initializer_list>

#include <fmt/format.h>

#include "bytes/checked.hpp"

namespace poise {
namespace {

using Fault = std::optional<std::string>;

Fault parts_fault(const Tensor& tensor, std::initializer_list<std::string_view> roles) {
  for (const std::string_view role : roles) {
    if (tensor.part(role) == nullptr) return fmt::format("{} needs the part {}", to_string(tensor.layout), role);
  }
  if (tensor.parts.size() != roles.size()) return fmt::format("{} has {} parts, found {}", to_string(tensor.layout), roles.size(), tensor.parts.size());
  return std::nullopt;
}

Fault index_fault(const Part& part) {
  if (is_integer(part.dtype)) return std::nullopt;
  return fmt::format("{}: expected an integer type, found {}", part.role, part.dtype_name);
}

Fault size_fault(const Part& part, std::optional<std::uint64_t> expected) {
  if (expected == part.blob->size()) return std::nullopt;
  if (!expected) return fmt::format("{}: its size overflows", part.role);
  return fmt::format("{}: expected {} bytes, found {}", part.role, *expected, part.blob->size());
}

Fault values_fault(const Tensor& tensor, std::uint64_t nonzeros) {
  const Part& values = tensor.require("values");
  if (nonzeros > tensor.elements()) return fmt::format("{} elements cannot lie in shape {}", nonzeros, to_string(tensor.shape));
  if (values.dtype == DType::unknown) return std::nullopt;
  return size_fault(values, packed_bytes(values.dtype, nonzeros));
}

Fault csr_fault(const Tensor& tensor) {
  if (tensor.shape.size() != 2) return fmt::format("compressed sparse rows have rank 2, found shape {}", to_string(tensor.shape));
  if (auto fault = parts_fault(tensor, {"values", "indices", "indptr"})) return fault;
  const Part& indices = tensor.require("indices");
  const Part& indptr = tensor.require("indptr");
  if (auto fault = index_fault(indices)) return fault;
  if (auto fault = index_fault(indptr)) return fault;
  const auto pointers = checked_add(tensor.shape[0], 1);
  if (auto fault = size_fault(indptr, pointers ? checked_mul(*pointers, info(indptr.dtype).bits / 8) : std::nullopt)) return fault;
  const std::uint64_t width = info(indices.dtype).bits / 8;
  if (indices.blob->size() % width != 0) return fmt::format("indices: {} bytes are no whole number of {}", indices.blob->size(), indices.dtype_name);
  return values_fault(tensor, indices.blob->size() / width);
}

Fault coo_fault(const Tensor& tensor) {
  if (tensor.shape.empty()) return "a coordinate list has rank 1 or more";
  if (auto fault = parts_fault(tensor, {"values", "coords"})) return fault;
  const Part& coords = tensor.require("coords");
  if (auto fault = index_fault(coords)) return fault;
  const std::uint64_t width = info(coords.dtype).bits / 8 * tensor.shape.size();
  if (coords.blob->size() % width != 0)
    return fmt::format("coords: {} bytes are no whole number of coordinates of rank {}", coords.blob->size(), tensor.shape.size());
  return values_fault(tensor, coords.blob->size() / width);
}

}  // namespace

std::optional<std::string> sparse_structure_fault(const Tensor& tensor) { return tensor.layout == Layout::sparse_csr ? csr_fault(tensor) : coo_fault(tensor); }

}  // namespace poise
