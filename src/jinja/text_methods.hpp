// What filters and methods of texts share.
#pragma once

#include <optional>
#include <vector>

#include "jinja/interpreter.hpp"

namespace poise::jinja {

enum class Sides { left, right, both };
// Removes the characters of a set at its sides; null: white space.
Text stripped(const Text& text, const Text* set, Sides sides);
// Splits at white space if there is no separator; at most `most` times.
std::vector<Object> split(const Text& text, const Text* separator, std::optional<std::int64_t> most, bool from_right);
std::vector<Text> lines_of(const Text& text, bool with_ends);
Text replaced(Budget& budget, const Text& text, const Text& from, const Text& to, std::int64_t most);
Text joined(Budget& budget, const Text& separator, const std::vector<Object>& items);
// Pads to that many characters.
Text padded(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Sides fill_sides);
Text capitalized(const Text& text);
bool has_case(const Text& text, Case which);  // str.islower(), str.isupper()

}  // namespace poise::jinja
