// same_value: equality of attribute values by content, whatever order maps have their keys in.
#pragma once

#include <poise/value.hpp>

namespace poise {

// As ==, but NaN is the same as NaN, and maps are the same whose keys have the same values.
bool same_value(const Value& a, const Value& b);

}  // namespace poise
