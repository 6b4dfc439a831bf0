#pragma once

#include "jinja/text.hpp"

namespace poise::jinja {

// Replaces "&amp;", "&#38;" and their like by their characters. What replaces input is input, too. The result
// is at most three times as long.
Text unescaped(const Text& text);

}  // namespace poise::jinja
