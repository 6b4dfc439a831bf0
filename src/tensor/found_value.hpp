// found_value: an attribute in a message that says what else was expected.
#pragma once

#include <string>

#include <poise/value.hpp>

namespace poise {

// "nothing", or the value as JSON, at most a hundred bytes of it.
std::string found_value(const Value* value);

}  // namespace poise
