// Integers of JSON texts that no Value holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

// The integers in a JSON text that 64 bits cannot hold, so that a number of double precision takes their place; each
// once, the first few.
std::vector<std::string> wide_integers(std::string_view text);

}  // namespace poise
