// Checks UTF-8, and finds where characters end. Overlong forms, surrogates and numbers beyond U+10FFFF are malformed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace poise {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

bool is_utf8(std::string_view text);

// Returns the length of the well-formed character at the front of `text`, or 0. Requires: text is not empty.
std::size_t measure_character(std::string_view text);

// Returns how many bytes a character with this first byte has, without checking the byte: 1 for ASCII and for bytes
// that follow a first one.
std::size_t find_announced_length(char lead);

// Returns how many bytes at the end of `text` may become a character when more follow: 0 to 3.
std::size_t measure_incomplete_tail(std::string_view text);

// Appends a character. Requires: code <= 0x10ffff.
void append_utf8(std::string& text, char32_t code);

// These functions classify ASCII characters. Unlike <cctype>, they do not depend on the program's locale.

constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_ascii_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_ascii_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_ascii_letter(char c) { return is_ascii_lower(c) || is_ascii_upper(c); }
constexpr bool is_ascii_alphanumeric(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }
// Returns true for space, tab, newline, vertical tab, form feed and carriage return.
constexpr bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
// Returns the text without such characters at its ends.
constexpr std::string_view trim_ascii_spaces(std::string_view text) {
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}
// Returns true for a visible character that is neither a letter nor a digit.
constexpr bool is_ascii_punctuation(char c) { return c > ' ' && c < '\x7f' && !is_ascii_alphanumeric(c); }

constexpr char to_lower_ascii(char c) { return is_ascii_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char to_upper_ascii(char c) { return is_ascii_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

// Returns the value of a hexadecimal digit, 0 to 15; -1 for another character.
constexpr int parse_hex_digit(char c) {
  if (is_ascii_digit(c)) return c - '0';
  const char lower = to_lower_ascii(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Returns the text with ASCII letters in lower case.
inline std::string to_lower_ascii(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return to_lower_ascii(c); });
  return lower;
}

}  // namespace poise
