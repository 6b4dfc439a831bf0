// JSON as Python's json writes it, with three numbers that JSON does not have, and integers of any size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

// The text with null in place of NaN, Infinity and -Infinity; `found` gets those that were there. Strings keep them.
std::string without_non_finite(std::string text, std::vector<std::string>& found);

// The integers in a JSON text that 64 bits cannot hold, so that a number of double precision takes their place; each
// once, the first few.
std::vector<std::string> wide_integers(std::string_view text);

}  // namespace poise
