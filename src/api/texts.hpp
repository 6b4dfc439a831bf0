// Splits a file into texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

// Splits a text at empty lines. Lines may end with a carriage return, which is dropped.
std::vector<std::string> split_texts(std::string_view content);

}  // namespace poise
