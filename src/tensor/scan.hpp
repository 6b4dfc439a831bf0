// scan: a pass over elements for values that a trustworthy file does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <poise/dtype.hpp>

namespace poise {

// The index of the first infinite or NaN element; for booleans, of the first byte that is neither 0 nor 1. Types that have
// no bad values: nothing. Requires: whole elements.
std::optional<std::uint64_t> find_bad_value(DType dtype, std::span<const std::byte> elements);

// "not finite", or "neither 0 nor 1": what such a value is.
const char* bad_value_name(DType dtype);

}  // namespace poise
