#include "bytes/utf8.hpp"

#include <cstdint>

#include "bytes/little_endian.hpp"

namespace poise {
namespace {

// Returns true if all bytes are ASCII. Two loads, which may overlap, read four to eight bytes. Requires: length <= 8.
bool is_short_ascii(const char* at, std::size_t length) {
  if (length >= 4) return ((load_le<std::uint32_t>(at) | load_le<std::uint32_t>(at + length - 4)) & 0x80808080U) == 0;
  unsigned any = 0;
  for (std::size_t i = 0; i < length; ++i) any |= static_cast<unsigned char>(at[i]);
  return any < 0x80;
}

bool is_trail_byte(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns true when a lead byte, and the byte after it if any, can begin a well-formed character (The Unicode Standard,
// table 3-7).
bool may_begin_character(std::string_view front) {
  const auto lead = static_cast<unsigned char>(front.front());
  if (lead < 0xc2 || lead > 0xf4) return false;
  if (front.size() == 1) return true;
  const auto second = static_cast<unsigned char>(front[1]);
  switch (lead) {
    case 0xe0: return second >= 0xa0;
    case 0xed: return second < 0xa0;
    case 0xf0: return second >= 0x90;
    case 0xf4: return second < 0x90;
    default: return true;
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = std::min<std::size_t>(text.size(), 8);
    if (!is_short_ascii(text.data(), length)) length = measure_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t find_announced_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0xc0) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

std::size_t measure_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const std::size_t length = find_announced_length(text.front());
  if (length == 1 || lead >= 0xf8 || text.size() < length) return 0;
  std::uint32_t code = lead & (0x7fU >> length);
  for (const char byte : text.substr(1, length - 1)) {
    if (!is_trail_byte(byte)) return 0;
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kSmallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

std::size_t measure_incomplete_tail(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(text.size(), 3);
  for (std::size_t length = 1; length <= most; ++length) {
    const std::string_view front = text.substr(text.size() - length);
    if (!is_trail_byte(front.front()))
      return find_announced_length(front.front()) > length && may_begin_character(front) ? length : 0;
  }
  return 0;
}

void append_utf8(std::string& text, char32_t code) {
  const auto append_byte = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return append_byte(code);
  if (code < 0x800) {
    append_byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      append_byte(0xe0 | code >> 12);
    } else {
      append_byte(0xf0 | code >> 18);
      append_byte(0x80 | (code >> 12 & 0x3f));
    }
    append_byte(0x80 | (code >> 6 & 0x3f));
  }
  append_byte(0x80 | (code & 0x3f));
}

}  // namespace poise
