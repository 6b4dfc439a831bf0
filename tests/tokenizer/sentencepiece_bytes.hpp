// SentencePiece models written by hand, byte for byte as the protocol buffer encoding has them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace poise {

inline std::string bytes_field(int number, const std::string& value) {
  std::string out;
  const auto varint = [&](std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
    out += static_cast<char>(n);
  };
  varint(static_cast<std::uint64_t>(number) << 3 | 2);
  varint(value.size());
  return out + value;
}
inline std::string varint_field(int number, int value) {
  std::string out;
  if (const int tag = number << 3; tag >= 0x80) {
    out += static_cast<char>(tag | 0x80);
    out += static_cast<char>(tag >> 7);
  } else {
    out += static_cast<char>(tag);
  }
  return out + static_cast<char>(value);
}

// Returns a SentencePiece message: piece, score, type.
inline std::string piece(const std::string& text, int type, float score = 1.5F) {
  std::string fixed32(4, '\0');
  std::memcpy(fixed32.data(), &score, 4);
  return bytes_field(1, bytes_field(1, text) + '\x15' + fixed32 + varint_field(3, type));
}

}  // namespace poise
