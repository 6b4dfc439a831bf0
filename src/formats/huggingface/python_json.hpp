// JSON as Python's json writes it, with three numbers that JSON does not have.
#pragma once

#include <string>
#include <vector>

namespace poise {

// The text with null in place of NaN, Infinity and -Infinity; `found` gets those that were there. Strings keep them.
std::string without_non_finite(std::string text, std::vector<std::string>& found);

}  // namespace poise
