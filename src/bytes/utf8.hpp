// UTF-8: is this well-formed text?
#pragma once

#include <string_view>

namespace poise {

// Shortest forms only, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace poise
