// These functions check a tensor's parts by their types, without reading their bytes, and show attributes in messages.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <poise/tensor.hpp>
#include <poise/value.hpp>

#include "bytes/short_text.hpp"

namespace poise {

// Returns true when Poise knows the type of every part.
inline bool has_known_types(const Tensor& tensor) {
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

// Formats a value, or null as "nothing", for a message about an unexpected value. Cuts JSON after 100 bytes. JSON has
// no NaN and no infinity, so such a number becomes "nan", "inf" or "-inf".
inline std::string format_found_value(const Value* value) {
  constexpr std::size_t kMostBytes = 100;
  const double* const number = value == nullptr ? nullptr : value->get_if<double>();
  if (number != nullptr && !std::isfinite(*number)) return fmt::format("{}", *number);
  return value == nullptr ? "nothing" : shorten(to_json(*value), kMostBytes);
}

}  // namespace poise
