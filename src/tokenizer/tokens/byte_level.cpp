#include "tokenizer/tokens/byte_level.hpp"

#include <array>

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

void append_encoded(std::string& text, std::string_view bytes) {
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
      // All characters of the alphabet are below U+0800, so they have at most two bytes.
      if (code < 0xC2 || code >= 0xE0 || ++at == text.size()) return false;
      const auto trail = static_cast<unsigned char>(text[at]);
      if ((trail & 0xC0) != 0x80) return false;
      code = (code & 0x1F) << 6 | (trail & 0x3F);
    }
    const int byte = find_byte(code);
    if (byte < 0) return false;
    *out++ = static_cast<char>(byte);
  }
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  return true;
}

int find_byte(char32_t code) { return code < kCodes ? kTables.bytes[code] : -1; }

}  // namespace poise::byte_level

namespace poise {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int, 256> kValues = [] {
  std::array<int, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i) values[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  return values;
}();

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const int value = kValues[static_cast<unsigned char>(digit)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace poise
