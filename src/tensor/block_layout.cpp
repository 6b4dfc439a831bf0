#include "tensor/block_layout.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"

namespace poise {
namespace {

struct BlockScheme {
  const BlockType* type;
  BlocksAlong along;
};

struct NamedLayout : BlockScheme {
  std::string name;
};

const std::vector<NamedLayout>& list_named_layouts() {
  static const auto layouts = [] {
    std::vector<NamedLayout> all;
    for (const BlockType& type : list_block_types()) {
      all.push_back({{&type, BlocksAlong::rows}, fmt::format("gguf.{}/1", type.name)});
      all.push_back({{&type, BlocksAlong::columns}, fmt::format("poise.{}.columns/1", type.name)});
    }
    return all;
  }();
  return layouts;
}

TensorLayout make_layout(const NamedLayout& row) { return TensorLayout::with_scheme(row.name, BlockScheme(row)); }

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, tensor.layout.name(), problem));
}

// Returns the size in bytes of a tensor whose rows (or columns) have `neighbours` elements; std::nullopt for a scalar,
// for rows (or columns) that are not whole blocks, and on overflow.
std::optional<std::uint64_t> count_block_bytes(const BlockType& type, const Shape& shape, std::uint64_t neighbours) {
  if (shape.empty() || neighbours % type.elements != 0) return std::nullopt;
  const auto elements = element_count(shape);
  return elements ? checked_mul(*elements / type.elements, type.bytes) : std::nullopt;
}

}  // namespace

TensorLayout make_block_layout(const BlockType& type, BlocksAlong along) {
  return make_layout(*std::ranges::find_if(
      list_named_layouts(), [&](const NamedLayout& row) { return row.type == &type && row.along == along; }));
}

const BlockType* get_block_type(const TensorLayout& layout) {
  const auto* scheme = layout.scheme<BlockScheme>();
  return scheme == nullptr ? nullptr : scheme->type;
}

BlocksAlong get_block_direction(const TensorLayout& layout) {
  const auto* scheme = layout.scheme<BlockScheme>();
  return scheme == nullptr ? BlocksAlong::rows : scheme->along;
}

std::optional<TensorLayout> find_block_layout(std::string_view name) {
  const auto found = std::ranges::find(list_named_layouts(), name, &NamedLayout::name);
  return found == list_named_layouts().end() ? std::nullopt : std::optional(make_layout(*found));
}

void check_block_parts(const Tensor& tensor) {
  const BlockType& type = *get_block_type(tensor.layout);
  const Part* data = tensor.part("data");
  if (data == nullptr || tensor.parts.size() != 1) fail(tensor, "expected a single part, \"data\"");
  if (data->dtype != DType::u8) fail(tensor, fmt::format("data: expected u8, found {}", data->type_name()));
  const bool columns = get_block_direction(tensor.layout) == BlocksAlong::columns;
  if (columns && tensor.shape.size() != 2)
    fail(tensor,
         fmt::format("shape: expected a matrix, because blocks run along columns; found {}", to_string(tensor.shape)));
  const auto bytes = count_block_bytes(type, tensor.shape,
                                       columns                ? tensor.shape.front()
                                       : tensor.shape.empty() ? 1
                                                              : tensor.shape.back());
  if (!bytes)
    fail(tensor, fmt::format("{} of shape {} are not whole blocks of {} elements", columns ? "columns" : "rows",
                             to_string(tensor.shape), type.elements));
  if (*bytes != data->blob->size())
    fail(tensor,
         fmt::format("data: shape {} needs {} bytes, found {}", to_string(tensor.shape), *bytes, data->blob->size()));
}

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, BlobPtr data) {
  Tensor tensor = make_dense(std::move(name), std::move(shape), DType::u8, std::move(data));
  tensor.layout = make_block_layout(type);
  return tensor;
}

}  // namespace poise
