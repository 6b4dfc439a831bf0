// GPT-2's alphabet: each byte as a printable character. Bytes that are printable in Latin-1 stand for themselves, the others are U+0100
// and what follows, in their order.
#pragma once

#include <string>
#include <string_view>

namespace poise::byte_level {

// The bytes as characters.
void append(std::string& text, std::string_view bytes);

// The byte that a character stands for, or -1.
int byte_of(char32_t code);

}  // namespace poise::byte_level
