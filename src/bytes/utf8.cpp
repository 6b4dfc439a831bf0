#include "bytes/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bytes/little_endian.hpp"

namespace poise {

namespace {

// Up to eight bytes: the ends cover the middle.
bool is_short_ascii(const char* at, std::size_t length) {
  if (length >= 4) return ((load_le<std::uint32_t>(at) | load_le<std::uint32_t>(at + length - 4)) & 0x80808080U) == 0;
  unsigned any = 0;
  for (std::size_t i = 0; i < length; ++i) any |= static_cast<unsigned char>(at[i]);
  return any < 0x80;
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (const std::size_t length = std::min<std::size_t>(text.size() - i, 8); is_short_ascii(text.data() + i, length)) {
      i += length;
      continue;
    }
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > text.size() - i) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 0x3fU);
    }
    constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kSmallest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += length;
  }
  return true;
}

}  // namespace poise
