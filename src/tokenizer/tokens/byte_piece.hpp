// Byte pieces: the tokens "<0x00>" to "<0xFF>" that stand for single bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace poise {

inline std::optional<std::uint8_t> byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned byte = 0;
  for (const char digit : text.substr(3, 2)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'A' || digit > 'F')) return std::nullopt;
    byte = byte * 16 + static_cast<unsigned>(decimal ? digit - '0' : digit - 'A' + 10);
  }
  return static_cast<std::uint8_t>(byte);
}

}  // namespace poise
