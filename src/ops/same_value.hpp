// same_value: equality of attribute values, independent of the order of keys in maps.
#pragma once

#include <poise/value.hpp>

namespace poise {

// As ==, but NaN equals NaN, and maps are equal when they have equal values under the same keys.
bool same_value(const Value& a, const Value& b);

}  // namespace poise
