// value_number: a value as a number, whichever kind of number it is.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/value.hpp>

namespace poise {

// Integers above 2^53 are rounded. Nothing where the value is absent or has another kind.
inline std::optional<double> number(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* real = value->get_if<double>()) return *real;
  if (const auto* positive = value->get_if<std::uint64_t>()) return static_cast<double>(*positive);
  if (const auto* negative = value->get_if<std::int64_t>()) return static_cast<double>(*negative);
  return std::nullopt;
}

}  // namespace poise
