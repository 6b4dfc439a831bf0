#include "views/layout_type.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "numeric/scan.hpp"
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

// Returns true if the type and the decoded size of a part are known.
bool is_known(const Part& part) { return part.dtype != DType::unknown && part.blob->decodable(); }

}  // namespace

const LayoutType layouts::other = {.name = "other"};

std::span<const LayoutType* const> list_layout_types() { return kRows; }

const LayoutType& find_layout_type(const TensorLayout& layout) {
  if (layout == Layout::dense) return layouts::dense;
  if (get_block_type(layout) != nullptr) return layouts::blocks;
  if (layout.is_carried()) return layouts::other;
  const auto* const found = std::ranges::find(kRows, layout.name(), &LayoutType::name);
  return found == kRows.end() ? layouts::other : **found;
}

const LayoutType& find_layout_type(const StoredType& type) {
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

void check_parts(const Tensor& tensor) {
  const LayoutType& type = find_layout_type(tensor.layout);
  if (type.check == nullptr) return;
  if (!type.needs_known_parts || std::ranges::all_of(tensor.parts, is_known)) type.check(tensor);
}

void check_content(const Tensor& tensor) {
  check_parts(tensor);
  const LayoutType& type = find_layout_type(tensor.layout);
  if (type.check_content != nullptr && std::ranges::all_of(tensor.parts, is_known)) type.check_content(tensor);
}

void require_roles(const Tensor& tensor, std::initializer_list<std::string_view> roles) {
  for (const std::string_view role : roles) {
    if (tensor.part(role) == nullptr)
      fail_parts(tensor, fmt::format("{} needs the part {}", tensor.layout.name(), role));
  }
  if (tensor.parts.size() == roles.size()) return;
  fail_parts(tensor, fmt::format("{}: {} parts, expected {}", tensor.layout.name(), tensor.parts.size(), roles.size()));
}

void require_type(const Tensor& tensor, const Part& part, DType dtype) {
  if (part.dtype != dtype)
    fail_parts(tensor, fmt::format("{}: expected {}, found {}", part.role, to_string(dtype), part.type_name()));
}

void require_elements(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> elements) {
  const auto bytes = elements ? packed_bytes(part.dtype, *elements) : std::nullopt;
  if (bytes == part.blob->size()) return;
  if (!elements) fail_parts(tensor, fmt::format("{}: the number of its elements does not fit 64 bits", part.role));
  fail_parts(tensor, fmt::format("{}: expected {} elements of {}, found {} bytes", part.role, *elements,
                                 part.type_name(), part.blob->size()));
}

std::uint64_t require_positive_attribute(const Tensor& tensor, std::string_view key) {
  const auto* number = tensor.attributes.get_if<std::uint64_t>(key);
  if (number == nullptr || *number == 0)
    fail_parts(tensor, fmt::format("attribute {}: expected a positive integer", key));
  return *number;
}

ValueRules get_value_rules(const Tensor& tensor, const Part& part) {
  const LayoutType& layout = find_layout_type(tensor.layout);
  return layout.value_rules != nullptr ? layout.value_rules(tensor, part) : ValueRules{part.dtype};
}

std::optional<CodeFormat> get_code_format(ValueRules::ByteCodes codes) {
  if (codes == ValueRules::ByteCodes::any) return std::nullopt;
  return CodeFormat{4, codes == ValueRules::ByteCodes::unsigned4, false};
}

std::string describe_bad_element(DType dtype, std::uint64_t element) {
  return fmt::format("element {} is {}", element, describe_bad_value(dtype));
}

std::optional<std::string> find_last_byte_fault(ValueRules::LastHalf half, std::byte last) {
  const unsigned high = std::to_integer<unsigned>(last) >> 4U;
  if (half == ValueRules::LastHalf::used || high == 0) return std::nullopt;
  if (half == ValueRules::LastHalf::unused) return "the unused half of the last byte is not zero";
  return fmt::format("the high half of the last byte holds no code: expected 0, found {}", high);
}

}  // namespace poise
