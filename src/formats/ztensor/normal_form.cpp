#include "formats/ztensor/normal_form.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace poise::ztensor {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Assigned characters whose NFC_Quick_Check is Yes and whose combining class is 0: nothing in front of them joins with them.
constexpr std::array kStable = {
    Range{0x0000, 0x02ff},    // Latin
    Range{0x03a3, 0x0482},    // Greek, Cyrillic
    Range{0x048a, 0x052f},    // Cyrillic
    Range{0x1e00, 0x1eff},    // Latin
    Range{0x2002, 0x2064},    // punctuation
    Range{0x2190, 0x2328},    // arrows, mathematics
    Range{0x2460, 0x2adb},    // symbols, mathematics
    Range{0x3041, 0x3096},    // kana
    Range{0x309b, 0x30ff},    // kana
    Range{0x3400, 0x9fff},    // Chinese characters
    Range{0xac00, 0xd7a3},    // Hangul syllables
    Range{0xff01, 0xffbe},    // full width forms
    Range{0x1f300, 0x1f6d7},  // pictographs
    Range{0x20000, 0x2a6df},  // Chinese characters
};

// Takes the first character off. Requires: UTF-8, not empty.
std::uint32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  text.remove_prefix(length);
  return point;
}

}  // namespace

bool surely_normal(std::string_view text) {
  while (!text.empty()) {
    const std::uint32_t point = take_character(text);
    if (std::ranges::none_of(kStable, [&](const Range& range) { return range.first <= point && point <= range.last; })) return false;
  }
  return true;
}

}  // namespace poise::ztensor
