// Integers of JSON texts that do not fit a Value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

// Returns the integers in a JSON text that 64 bits cannot hold, so that parsing rounds them to double; each once, the
// first few.
std::vector<std::string_view> wide_integers(std::string_view text);

// Such an integer for a message: it may have any number of digits.
std::string short_integer(std::string_view digits);

// As parse_json(), but refuses such integers, for values that must be written as they were read.
Value parse_exact_json(std::string_view text, const std::string& name);

}  // namespace poise
