// Unicode's normal form C, as far as it can be known without its tables.
#pragma once

#include <string_view>

namespace poise::ztensor {

// True when every character is one that never changes under normalization: ASCII, Latin, Greek and Cyrillic letters, kana,
// Chinese characters, Hangul syllables and such. False means: it may or may not be normal. Requires: UTF-8.
bool surely_normal(std::string_view text);

}  // namespace poise::ztensor
