#include "views/part_checks.hpp"

#include <fmt/format.h>

#include "views/layout_type.hpp"

namespace poise {

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
  fail_parts(tensor,
             fmt::format("{}: expected {} elements of {}, found {} bytes", part.role,
                         elements ? fmt::format("{}", *elements) : "too many", part.type_name(), part.blob->size()));
}

std::uint64_t positive_attribute(const Tensor& tensor, std::string_view key) {
  const Value* value = tensor.attributes.find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  if (number == nullptr || *number == 0)
    fail_parts(tensor, fmt::format("attribute {}: expected a positive integer", key));
  return *number;
}

}  // namespace poise
