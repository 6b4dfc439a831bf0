// The kind of a metadata value, for people: "integer", "text", "array[3]".
#pragma once

#include <string>

#include <poise/value.hpp>

namespace poise {

std::string type_name(const Value& value);

}  // namespace poise
