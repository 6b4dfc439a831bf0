#include "tokenizer/tokens/byte_level.hpp"

#include <array>
#include <cstddef>

#include "tokenizer/tokens/unicode.hpp"

namespace poise::byte_level {
namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kCodes = 0x100 + 68;  // 68 bytes are not printable

struct Tables {
  std::array<char32_t, 256> codes{};
  std::array<int, kCodes> bytes{};
};

constexpr Tables kTables = [] {
  Tables tables;
  tables.bytes.fill(-1);
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t code = is_printable(byte) ? byte : next++;
    tables.codes[byte] = code;
    tables.bytes[code] = static_cast<int>(byte);
  }
  return tables;
}();

}  // namespace

void append(std::string& text, std::string_view bytes) {
  const std::size_t before = text.size();
  text.resize(before + 2 * bytes.size());
  char* out = text.data() + before;
  for (const char byte : bytes) {
    const char32_t code = kTables.codes[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      *out++ = static_cast<char>(code);
    } else {
      *out++ = static_cast<char>(0xC0 | code >> 6);
      *out++ = static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  text.resize(static_cast<std::size_t>(out - text.data()));
}

bool decode(std::string_view text, std::string& bytes) {
  bytes.resize(text.size());
  char* out = bytes.data();
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto code = static_cast<char32_t>(static_cast<unsigned char>(text[at]));
    if (code >= 0x80) {
      // Two bytes: all of the alphabet is below U+0800.
      if (code < 0xC2 || code >= 0xE0 || ++at == text.size()) return false;
      const auto trail = static_cast<unsigned char>(text[at]);
      if ((trail & 0xC0) != 0x80) return false;
      code = (code & 0x1F) << 6 | (trail & 0x3F);
    }
    const int byte = byte_of(code);
    if (byte < 0) return false;
    *out++ = static_cast<char>(byte);
  }
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  return true;
}

int byte_of(char32_t code) { return code < kCodes ? kTables.bytes[code] : -1; }

}  // namespace poise::byte_level
