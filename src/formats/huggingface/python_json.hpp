// JSON as Python's json writes it, with three numbers that JSON lacks.
#pragma once

#include <string>
#include <vector>

namespace poise {

// The text with null in place of NaN, Infinity and -Infinity outside strings; `found` gets those that occurred.
std::string without_non_finite(std::string text, std::vector<std::string>& found);

}  // namespace poise
