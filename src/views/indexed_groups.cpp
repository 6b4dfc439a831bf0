// Reads poise.quant_group_indexed/1. It is like zt.quant_group/1 (tensor/group_scheme.hpp), but an index has the group
// of each position along the axis. Quantizers that sort columns by their importance need it. The parts are data,
// scales, perhaps zeros, and
//
//   group_index   u32, one for each index along the axis: less than the number of groups
#include "views/groups.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tensor/group_scheme.hpp"
#include "tensor/part_types.hpp"
#include "views/layout_type.hpp"
#include "views/row_order.hpp"

namespace poise {
namespace {

constexpr std::string_view kIndex = "group_index";

// Returns the tensor as zt.quant_group/1, without the index. Requires: the types of all parts are known.
Tensor make_neighbour_groups(const Tensor& tensor) {
  Tensor groups = tensor;
  groups.parts = {};
  for (const Part& part : tensor.parts) {
    if (part.role == kIndex) continue;
    groups.parts.push_back(part);
    if (part.role == "data") groups.parts.back().role = "packed_weight";
  }
  groups.layout = make_group_layout(read_group_scheme(groups, GroupWords::zt2));
  return groups;
}

const GroupScheme& get_scheme(const Tensor& tensor) { return *tensor.layout.scheme<GroupScheme>(); }

std::optional<TensorLayout> read_indexed(const Tensor& tensor, std::string_view name) {
  if (name != kIndexedGroups) return std::nullopt;
  // The sizes of parts with unknown types cannot be checked; such a tensor is only copied.
  return has_known_types(tensor) ? make_indexed_groups_layout(tensor) : TensorLayout::other(std::string(name));
}

void check_indexed(const Tensor& tensor) {
  if (!has_known_types(tensor)) return;
  const Part* index = tensor.part(kIndex);
  if (index == nullptr) fail_parts(tensor, fmt::format("{} needs the part {}", kIndexedGroups, kIndex));
  check_group_parts(make_neighbour_groups(tensor));
  require_type(tensor, *index, DType::u32);
  require_elements(tensor, *index, tensor.shape[get_scheme(tensor).axis]);
}

void check_index(const Tensor& tensor) { read_group_index(tensor, get_scheme(tensor), *tensor.require(kIndex).blob); }

BlobPtr make_indexed_elements(const Tensor& tensor) {
  check_indexed(tensor);
  return make_group_decoded_blob(make_neighbour_groups(tensor), tensor.require(kIndex).blob);
}

// Returns true if codes, scales and zero points are rows without gaps, so that columns can be reordered.
bool are_gapless_rows(const Tensor& groups, const GroupScheme& scheme) {
  return groups.shape.size() == 2 && groups.elements() != 0 && scheme.axis == 1 && scheme.packing_axis == 1 &&
         !scheme.high_bits_first && scheme.bits >= 2 && 8 % scheme.bits == 0 &&
         scheme.per_word * scheme.bits == info(scheme.word).bits && groups.shape[1] * scheme.bits % 8 == 0 &&
         scheme.zeros != GroupScheme::Zeros::packed &&
         std::ranges::all_of(groups.parts, [](const Part& part) { return info(part.dtype).bits % 8 == 0; });
}

// Returns the largest size that divides the sizes of all groups. Columns that are sorted by group divide into groups of
// that size; several of these may have the same scale.
std::uint64_t find_common_size(const std::vector<std::uint32_t>& index, std::uint64_t groups) {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(groups));
  for (const std::uint32_t group : index) ++sizes[group];
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0},
                         [](std::uint64_t a, std::uint64_t b) { return std::gcd(a, b); });
}

std::string describe_indexed_type(const Tensor& tensor) {
  return fmt::format("group{}:{}:indexed", get_scheme(tensor).bits, get_scheme(tensor).group_size);
}

bool have_same_indexed_grouping(const Tensor& a, const Tensor& b) {
  return have_same_meaning(get_scheme(a), get_scheme(b));
}

}  // namespace

const LayoutType layouts::indexed_groups = {
    .name = kIndexedGroups,
    .quantized = true,
    .read = read_indexed,
    .check = check_indexed,
    .needs_known_parts = true,
    .check_content = check_index,
    .has_float_elements = has_known_types,
    .elements = make_indexed_elements,
    .stored_type = describe_indexed_type,
    .same_scheme = have_same_indexed_grouping,
    .is_scheme_attribute = is_group_scheme_attribute,
};

TensorLayout make_indexed_groups_layout(const Tensor& tensor) {
  if (tensor.part("packed_weight") != nullptr)
    fail_parts(tensor, fmt::format("{} has no part packed_weight: codes are called data", kIndexedGroups));
  const GroupScheme scheme = *get_group_scheme(make_neighbour_groups(tensor).layout);
  if (scheme.group_size == 0) fail_parts(tensor, "attribute group_size: expected 1 or more, found 0");
  return TensorLayout::with_scheme(kIndexedGroups, scheme);
}

std::optional<SortedGroups> sort_groups(const Tensor& tensor) {
  check_indexed(tensor);
  SortedGroups result = {make_neighbour_groups(tensor), {}};
  GroupScheme scheme = *get_group_scheme(result.groups.layout);
  if (!are_gapless_rows(result.groups, scheme)) return std::nullopt;
  const std::uint64_t columns = tensor.shape[1];
  const std::uint64_t groups = columns / scheme.group_size;
  const std::vector<std::uint32_t> index = read_group_index(tensor, scheme, *tensor.require(kIndex).blob);
  std::vector<std::uint32_t>& order = result.order;
  order.resize(index.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t column) { return index[column]; });
  scheme.group_size = find_common_size(index, groups);
  std::vector<std::uint32_t> group_at;  // the group of each column after sorting
  for (std::size_t i = 0; i < order.size(); i += static_cast<std::size_t>(scheme.group_size))
    group_at.push_back(index[order[i]]);
  result.groups.layout = make_group_layout(scheme);
  const bool in_order = std::ranges::is_sorted(order);
  for (Part& part : result.groups.parts) {
    const bool are_codes = part.role == "packed_weight";
    if (are_codes && in_order) continue;
    part.blob = are_codes ? reorder_columns(part.blob, scheme.bits, columns, order)
                          : reorder_columns(part.blob, info(part.dtype).bits, groups, group_at);
    part.digest.reset();
  }
  if (in_order) order.clear();
  return result;
}

std::optional<RowGroups> read_row_groups(const Tensor& tensor) {
  check_indexed(tensor);
  const GroupScheme& scheme = get_scheme(tensor);
  if (tensor.shape.size() != 2 || scheme.axis != 0) return std::nullopt;
  return RowGroups{make_neighbour_groups(tensor), read_group_index(tensor, scheme, *tensor.require(kIndex).blob)};
}

}  // namespace poise
