// The scheme of a layout that TensorLayout::described() made.
#pragma once

#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

// Null for layouts with another name. Requires: every described layout of that name holds a Scheme.
template <typename Scheme>
const Scheme* layout_scheme(const TensorLayout& layout, std::string_view name) {
  return layout.scheme() != nullptr && layout.name() == name ? static_cast<const Scheme*>(layout.scheme()) : nullptr;
}

}  // namespace poise
