#include "views/layout_type.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/block_layout.hpp"

namespace poise {
namespace {

constexpr std::array kRows = std::to_array<const LayoutType*>({
    &layouts::dense,
    &layouts::sparse_csr,
    &layouts::sparse_coo,
    &layouts::groups,
    &layouts::indexed_groups,
    &layouts::affine,
    &layouts::mx,
    &layouts::block_scaled,
    &layouts::codebook,
    &layouts::blocks,
});

}  // namespace

const LayoutType layouts::other = {.name = "other"};

std::span<const LayoutType* const> layout_types() { return kRows; }

const LayoutType& layout_type(const TensorLayout& layout) {
  if (layout == Layout::dense) return layouts::dense;
  if (block_type(layout) != nullptr) return layouts::blocks;
  if (layout.is_carried()) return layouts::other;
  const auto* const found = std::ranges::find(kRows, layout.name(), &LayoutType::name);
  return found == kRows.end() ? layouts::other : **found;
}

const LayoutType& layout_type(const StoredType& type) {
  if (!type.blocks.empty()) return layouts::blocks;
  if (type.grouped()) return layouts::groups;
  return type.quantized() ? layouts::affine : layouts::dense;
}

void fail_parts(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem));
}

const Part& require_data(const Tensor& tensor) {
  const Part* data = tensor.part("data");
  if (data == nullptr) fail_parts(tensor, fmt::format("{} needs the part data", to_string(tensor.layout)));
  return *data;
}

TensorLayout read_layout(const Tensor& tensor, std::string_view name) {
  for (const LayoutType* type : kRows) {
    if (type->read == nullptr) continue;
    if (auto layout = type->read(tensor, name)) return std::move(*layout);
  }
  return TensorLayout::other(std::string(name));
}

}  // namespace poise
