// Checks that several layouts share. Each throws invalid_file (without path) naming tensor and part.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

// Requires exactly these parts.
void require_roles(const Tensor& tensor, std::initializer_list<std::string_view> roles);
// Requires that the part has that type.
void require_type(const Tensor& tensor, const Part& part, DType dtype);
// Requires that the part has that many elements of its type. Nothing stands for more than any part can have.
void require_elements(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> elements);
// An attribute that is a positive integer.
std::uint64_t positive_attribute(const Tensor& tensor, std::string_view key);

}  // namespace poise
