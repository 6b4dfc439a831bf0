// UTF-8: validity, and where characters end. Overlong forms, surrogates and numbers beyond U+10FFFF are malformed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace poise {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

bool is_utf8(std::string_view text);

// The length of the well-formed character at the front of `text`, or 0. Requires: text is not empty.
std::size_t character_length(std::string_view text);

// The length that the lead byte announces; 1 for bytes that cannot lead.
std::size_t announced_length(char lead);

// How many bytes at the end of `text` may become a character when more follow: 0 to 3.
std::size_t incomplete_tail(std::string_view text);

// Appends a character. Requires: code <= 0x10ffff.
void append_utf8(std::string& text, char32_t code);

}  // namespace poise
