// What a string literal of Python spells.
#pragma once

#include <string>
#include <string_view>

namespace poise::jinja {

// Appends what the text between the quotes spells. Returns what is wrong with it; empty: nothing.
std::string unescape(std::string_view text, std::string& out);

}  // namespace poise::jinja
