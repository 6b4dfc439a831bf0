#include "jinja/string_literal.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "bytes/ascii.hpp"
#include "jinja/text.hpp"

namespace poise::jinja {
namespace {

// A number of exactly `count` digits.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  std::uint32_t number = 0;
  for (const char c : text.substr(0, count)) {
    const int digit = hex_digit_value(c);
    if (digit < 0) return std::nullopt;
    number = number * 16 + static_cast<std::uint32_t>(digit);
  }
  return number;
}

char simple_escape(char c) {
  switch (c) {
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    case '\\':
    case '\'':
    case '"': return c;
    default: return '\0';
  }
}

}  // namespace

std::string unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      out += text[i++];
      continue;
    }
    const char c = text[i + 1];
    i += 2;
    if (c == '\n') continue;
    if (const char simple = simple_escape(c); simple != '\0') {
      out += simple;
    } else if (c >= '0' && c <= '7') {
      char32_t code = static_cast<char32_t>(c - '0');
      for (int more = 0; more < 2 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++more)
        code = code * 8 + static_cast<char32_t>(text[i++] - '0');
      append_code(out, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const auto code = hexadecimal(text.substr(i), count);
      if (!code) return fmt::format("a string has \\{} without {} hexadecimal digits", c, count);
      if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000))
        return fmt::format("a string has the code U+{:04X}, which is not a character", *code);
      append_code(out, *code);
      i += count;
    } else if (c == 'N') {
      return "a string names a character with \\N, which is not supported";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      // Python escapes such a character before it looks for escapes: its backslash then precedes this one.
      const Decoded here = decode(text, i - 1);
      const auto code = static_cast<std::uint32_t>(here.code);
      out += code <= 0xFF     ? fmt::format("\\x{:02x}", code)
             : code <= 0xFFFF ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
      i = here.next;
    } else {
      (out += '\\') += c;
    }
  }
  return {};
}

}  // namespace poise::jinja
