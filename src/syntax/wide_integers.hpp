// Integers of JSON texts that no Value holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

// The integers in a JSON text that 64 bits cannot hold, so that a number of double precision takes their place; each
// once, the first few.
std::vector<std::string_view> wide_integers(std::string_view text);

// Such an integer for a message: it may have any number of digits.
std::string short_integer(std::string_view digits);

// As parse_json(), but refuses such integers, for values that have to come out as they went in.
Value parse_exact_json(std::string_view text, const std::string& name);

}  // namespace poise
