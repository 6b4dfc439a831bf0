// Numbers of JSON texts (RFC 8259, section 6).
#pragma once

#include <optional>
#include <string_view>

#include <poise/value.hpp>

namespace poise {

// An integer that 64 bits hold, with or without a sign, stays an integer; others become double, where what is too small
// becomes 0. Nothing, with the problem, for a token that is not a number and for one beyond double precision.
std::optional<Value> parse_json_number(std::string_view token, std::string_view& problem);

}  // namespace poise
