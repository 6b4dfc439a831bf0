// Groups of codes that are not neighbours (indexed_groups.cpp describes the parts).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kIndexedGroups = "poise.quant_group_indexed/1";

// The layout that the tensor's attributes and parts describe. Throws invalid_file (without path) naming tensor and
// attribute when they are invalid.
TensorLayout indexed_groups_layout(const Tensor& tensor);

// The same numbers in groups of neighbours: columns in the order of their groups.
struct SortedGroups {
  Tensor groups;                     // of zt.quant_group/1
  std::vector<std::uint32_t> order;  // which column of the matrix each of these columns is; empty: in order
};
// Reads the index. Nothing for groups along columns, and for tensors that are not matrices, or whose codes or zero
// points are packed in a way that the order of columns cannot change. Throws what checking the parts throws.
std::optional<SortedGroups> sorted_groups(const Tensor& tensor);

// Groups along columns.
struct RowGroups {
  Tensor groups;                     // of zt.quant_group/1, without the index
  std::vector<std::uint32_t> index;  // the group of each row
};
// Reads the index. Nothing for groups along rows, and for tensors that are not matrices. Throws what checking the parts
// throws.
std::optional<RowGroups> row_groups(const Tensor& tensor);

}  // namespace poise
