// Decodes Python's string literals.
#pragma once

#include <string>
#include <string_view>

namespace poise::jinja {

// Appends the decoded text between the quotes. Returns what is wrong with it; empty if nothing.
std::string unescape(std::string_view text, std::string& out);

}  // namespace poise::jinja
