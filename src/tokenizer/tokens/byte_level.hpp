// GPT-2's alphabet writes each byte as a visible character. Bytes of visible Latin-1 characters stand for themselves;
// the others, such as the space, become U+0100 and up, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poise::byte_level {

// Appends the characters that stand for the bytes.
void append_encoded(std::string& text, std::string_view bytes);

// Returns the byte that a character stands for, or -1.
int find_byte(char32_t code);

// Replaces `bytes` with the bytes that a text stands for. Returns false if the text is invalid UTF-8, or has a
// character outside the alphabet.
bool decode(std::string_view text, std::string& bytes);

// Returns the length in UTF-8 of the character for a byte.
inline std::size_t count_character_bytes(char byte) { return byte >= 0x21 && byte <= 0x7E ? 1 : 2; }

}  // namespace poise::byte_level

namespace poise {

// The character U+2581 stands for a space in SentencePiece's tokens.
inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";

// Returns the byte of a byte piece, one of the tokens "<0x00>" to "<0xFF>"; std::nullopt for other texts.
inline std::optional<std::uint8_t> parse_byte_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned byte = 0;
  for (const char digit : text.substr(3, 2)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'A' || digit > 'F')) return std::nullopt;
    byte = byte * 16 + static_cast<unsigned>(decimal ? digit - '0' : digit - 'A' + 10);
  }
  return static_cast<std::uint8_t>(byte);
}

// Encodes as base64 (RFC 4648), with padding.
std::string encode_base64(std::string_view bytes);

// Decodes base64; std::nullopt if it is invalid.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace poise
