// GPT-2's alphabet: each byte as a printable character. Bytes that are printable in Latin-1 stand for themselves; the
// others become U+0100 and up, in order.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace poise::byte_level {

// The bytes as characters.
void append(std::string& text, std::string_view bytes);

// The byte that a character stands for, or -1.
int byte_of(char32_t code);

// Replaces `bytes` by the bytes that a text stands for; false if it is not in the alphabet, or invalid UTF-8.
bool decode(std::string_view text, std::string& bytes);

// The length in UTF-8 of the character for a byte.
inline std::size_t character_bytes(char byte) { return byte >= 0x21 && byte <= 0x7E ? 1 : 2; }

}  // namespace poise::byte_level
