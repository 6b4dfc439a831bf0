#include "views/layout_type.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::array<const LayoutType*, 7> kRows = {
    &layouts::dense,  &layouts::sparse_csr, &layouts::sparse_coo, &layouts::groups,
    &layouts::affine, &layouts::mx,         &layouts::blocks,
};

}  // namespace

const LayoutType layouts::other = {.name = "other"};

std::span<const LayoutType* const> layout_types() { return kRows; }

const LayoutType& layout_type(const TensorLayout& layout) {
  if (layout == Layout::dense) return layouts::dense;
  if (layout.blocks() != nullptr) return layouts::blocks;
  if (layout.is_carried()) return layouts::other;
  const auto* const found = std::ranges::find(kRows, layout.name(), &LayoutType::name);
  return found == kRows.end() ? layouts::other : **found;
}

const LayoutType& layout_type(const StoredType& type) {
  if (type.blocks != nullptr) return layouts::blocks;
  if (type.grouped()) return layouts::groups;
  return type.quantized() ? layouts::affine : layouts::dense;
}

TensorLayout read_layout(const Tensor& tensor, std::string_view name) {
  for (const LayoutType* type : kRows) {
    if (type->read == nullptr) continue;
    if (auto layout = type->read(tensor, name)) return std::move(*layout);
  }
  return TensorLayout::other(std::string(name));
}

}  // namespace poise
