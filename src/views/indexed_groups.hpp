// Groups of codes that are not neighbours (indexed_groups.cpp has the parts).
#pragma once

#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kIndexedGroups = "poise.quant_group_indexed/1";

// The layout that the tensor's attributes and parts spell. Throws invalid_file (without path) naming tensor and
// attribute where they make no sense.
TensorLayout indexed_groups_layout(const Tensor& tensor);

}  // namespace poise
