// Groups of codes that are not neighbours (indexed_groups.cpp describes the parts).
#pragma once

#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kIndexedGroups = "poise.quant_group_indexed/1";

// The layout that the tensor's attributes and parts describe. Throws invalid_file (without path) naming tensor and
// attribute when they are invalid.
TensorLayout indexed_groups_layout(const Tensor& tensor);

}  // namespace poise
