// Finds values that indicate a damaged file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <poise/dtype.hpp>

namespace poise {

// Counts elements that are infinite or NaN; for booleans, bytes that are neither 0 nor 1.
struct BadValues {
  std::uint64_t count = 0;
  std::uint64_t first = 0;  // index of the first, if there is one
};

// Returns a count of 0 for types that have no bad values. Requires: whole elements.
BadValues find_bad_values(DType dtype, std::span<const std::byte> elements);

// Describes a bad value of the type: "not finite" or "neither 0 nor 1".
const char* describe_bad_value(DType dtype);

}  // namespace poise
