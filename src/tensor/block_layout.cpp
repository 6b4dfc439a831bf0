#include "tensor/block_layout.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"

namespace poise {
namespace {

// In the order of block_types().
const std::vector<std::string>& layout_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const BlockType& type : block_types()) all.push_back(fmt::format("gguf.{}/1", type.name));
    return all;
  }();
  return names;
}

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, tensor.layout.name(), problem));
}

}  // namespace

std::string_view block_layout_name(const BlockType& type) { return layout_names()[static_cast<std::size_t>(&type - block_types().data())]; }

const BlockType* block_type_of_layout(std::string_view name) {
  const auto found = std::ranges::find(layout_names(), name);
  return found == layout_names().end() ? nullptr : &block_types()[static_cast<std::size_t>(found - layout_names().begin())];
}

std::optional<std::uint64_t> block_bytes(const BlockType& type, const Shape& shape) {
  if (shape.empty() || shape.back() % type.elements != 0) return std::nullopt;
  const auto elements = element_count(shape);
  return elements ? checked_mul(*elements / type.elements, type.bytes) : std::nullopt;
}

void check_block_parts(const Tensor& tensor) {
  const BlockType& type = *tensor.layout.blocks();
  const Part* data = tensor.part("data");
  if (data == nullptr || tensor.parts.size() != 1) fail(tensor, "expected the one part data");
  if (data->dtype != DType::u8) fail(tensor, fmt::format("data: expected u8, found {}", data->type_name()));
  const auto bytes = block_bytes(type, tensor.shape);
  if (!bytes) fail(tensor, fmt::format("rows of shape {} are no whole blocks of {} elements", to_string(tensor.shape), type.elements));
  if (*bytes != data->blob->size()) fail(tensor, fmt::format("data: shape {} needs {} bytes, found {}", to_string(tensor.shape), *bytes, data->blob->size()));
}

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, HeldBlob data) {
  Tensor tensor = make_dense(std::move(name), std::move(shape), DType::u8, std::move(data));
  tensor.layout = TensorLayout(type);
  return tensor;
}

}  // namespace poise
