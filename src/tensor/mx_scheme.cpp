#include "tensor/mx_scheme.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/part_types.hpp"

namespace poise {
namespace {

constexpr std::array kElements = {DType::f4_e2m1, DType::f8_e4m3, DType::f8_e5m2, DType::i8, DType::unknown};

[[noreturn]] void fail_mx(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, kMxLayout, problem));
}

const Part& require_mx_part(const Tensor& tensor, std::string_view role) {
  const Part* part = tensor.part(role);
  if (part == nullptr) fail_mx(tensor, fmt::format("the part {} is missing", role));
  return *part;
}

std::uint64_t read_mx_number(const Tensor& tensor, std::string_view key) {
  const auto* number = tensor.attributes.get_if<std::uint64_t>(key);
  if (number == nullptr)
    fail_mx(tensor, fmt::format("attribute {}: expected an unsigned integer, found {}", key,
                                format_found_value(tensor.attributes.find(key))));
  return *number;
}

void require_size(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> bytes) {
  if (bytes == part.blob->size()) return;
  if (!bytes) fail_mx(tensor, fmt::format("{}: its size does not fit 64 bits", part.role));
  fail_mx(tensor, fmt::format("{}: expected {} bytes, found {}", part.role, *bytes, part.blob->size()));
}

}  // namespace

TensorLayout make_mx_layout(const MxScheme& scheme) { return TensorLayout::with_scheme(kMxLayout, scheme); }

Attributes make_mx_attributes(const MxScheme& scheme) {
  return {{"axis", std::uint64_t{scheme.axis}}, {"block_size", scheme.block_size}, {"scale_form", "e8m0_exponent"}};
}

TensorLayout read_mx_layout(const Tensor& tensor) {
  const Value* form = tensor.attributes.find("scale_form");
  if (form != nullptr && *form != Value("e8m0_exponent"))
    fail_mx(tensor, fmt::format("attribute scale_form: expected e8m0_exponent, found {}", format_found_value(form)));
  if (tensor.shape.empty()) fail_mx(tensor, "shape: expected one dimension or more, found none");
  const std::uint64_t axis =
      tensor.attributes.find("axis") == nullptr ? tensor.shape.size() - 1 : read_mx_number(tensor, "axis");
  if (axis >= tensor.shape.size())
    fail_mx(tensor,
            fmt::format("attribute axis: {} is out of range, the tensor has {} dimensions", axis, tensor.shape.size()));
  const std::uint64_t block = read_mx_number(tensor, "block_size");
  if (block < 2 || tensor.shape[static_cast<std::size_t>(axis)] % block != 0) {
    fail_mx(tensor, fmt::format("attribute block_size: {} does not divide the {} elements along axis {}", block,
                                tensor.shape[static_cast<std::size_t>(axis)], axis));
  }
  return make_mx_layout({static_cast<std::size_t>(axis), block});
}

void check_mx_parts(const Tensor& tensor) {
  const Part& data = require_mx_part(tensor, "data");
  const Part& scales = require_mx_part(tensor, "scales");
  if (tensor.parts.size() != 2) fail_mx(tensor, fmt::format("{} parts, expected 2", tensor.parts.size()));
  if (scales.dtype != DType::f8_e8m0)
    fail_mx(tensor, fmt::format("scales: expected u8 of type f8_e8m0, found {}", scales.type_name()));
  if (std::ranges::find(kElements, data.dtype) == kElements.end())
    fail_mx(tensor, fmt::format("data: {} is not an MX element", data.type_name()));
  if (data.dtype != DType::unknown) require_size(tensor, data, packed_bytes(data.dtype, tensor.elements()));
  require_size(tensor, scales, tensor.elements() / get_mx_scheme(tensor.layout)->block_size);
}

bool is_mx_scheme_attribute(std::string_view attribute) {
  return attribute == "axis" || attribute == "block_size" || attribute == "scale_form";
}

}  // namespace poise
