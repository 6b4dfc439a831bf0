// Splits a file into texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

// Returns the texts between empty lines. Drops carriage returns at the ends of lines.
std::vector<std::string> split_texts(std::string_view content);

}  // namespace poise
