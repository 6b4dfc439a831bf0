// An element of a tensor as a plain value, for the scalars that checkpoints hold among their settings.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <poise/dtype.hpp>
#include <poise/value.hpp>

namespace poise {

// A number, a boolean, or [real, imaginary] for complex numbers. Nothing for types without single elements of whole
// bytes, and where `bytes` are not those of one element.
std::optional<Value> element_value(DType dtype, std::span<const std::byte> bytes);

}  // namespace poise
