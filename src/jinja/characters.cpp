// utf8proc has the categories of characters and the cases that are one character. The tables below have what it lacks.
// They come from Python 3.11, whose Unicode is version 14.
#include "jinja/characters.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <utf8proc.h>

#include "bytes/utf8.hpp"

namespace poise::jinja {
namespace {

utf8proc_category_t find_category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

struct CodeRange {
  char32_t first, last;
};

// Other_Lowercase of Unicode's PropList.txt.
constexpr std::array kOtherLower = std::to_array<CodeRange>({
    {0xAA, 0xAA},     {0xBA, 0xBA},     {0x2B0, 0x2B8},     {0x2C0, 0x2C1},     {0x2E0, 0x2E4},     {0x345, 0x345},
    {0x37A, 0x37A},   {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
    {0x2090, 0x209C}, {0x2170, 0x217F}, {0x24D0, 0x24E9},   {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},
    {0xA7F8, 0xA7F9}, {0xAB5C, 0xAB5F}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
});
// Other_Uppercase of PropList.txt.
constexpr std::array kOtherUpper = std::to_array<CodeRange>(
    {{0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}});
// Digits that are not decimal: Numeric_Type=Digit.
constexpr std::array kOtherDigits = std::to_array<CodeRange>({
    {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
    {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
});
// Letters that str.isidentifier() refuses everywhere (NFKC changes them), then those that it refuses as the first one.
constexpr std::array kNotInIdentifiers = std::to_array<CodeRange>({{0x37A, 0x37A},
                                                                   {0x2E2F, 0x2E2F},
                                                                   {0xFC5E, 0xFC63},
                                                                   {0xFDFA, 0xFDFB},
                                                                   {0xFE70, 0xFE70},
                                                                   {0xFE72, 0xFE72},
                                                                   {0xFE74, 0xFE74},
                                                                   {0xFE76, 0xFE76},
                                                                   {0xFE78, 0xFE78},
                                                                   {0xFE7A, 0xFE7A},
                                                                   {0xFE7C, 0xFE7C},
                                                                   {0xFE7E, 0xFE7E}});
constexpr std::array kNotFirst = std::to_array<CodeRange>({{0xE33, 0xE33}, {0xEB3, 0xEB3}, {0xFF9E, 0xFF9F}});
constexpr std::array kOtherFirst = std::to_array<CodeRange>({{0x1885, 0x1886}, {0x2118, 0x2118}, {0x212E, 0x212E}});
constexpr std::array kOtherInside = std::to_array<CodeRange>(
    {{0xB7, 0xB7}, {0x387, 0x387}, {0x1369, 0x1371}, {0x19DA, 0x19DA}, {0x2118, 0x2118}, {0x212E, 0x212E}});
// Ideographs that stand for numbers.
constexpr std::array<char32_t, 81> kNumericIdeographs = {
    0x3405,  0x3483,  0x382A,  0x3B4D,  0x4E00,  0x4E03,  0x4E07,  0x4E09,  0x4E5D,  0x4E8C,  0x4E94,  0x4E96,
    0x4EBF,  0x4EC0,  0x4EDF,  0x4EE8,  0x4F0D,  0x4F70,  0x5104,  0x5146,  0x5169,  0x516B,  0x516D,  0x5341,
    0x5343,  0x5344,  0x5345,  0x534C,  0x53C1,  0x53C2,  0x53C3,  0x53C4,  0x56DB,  0x58F1,  0x58F9,  0x5E7A,
    0x5EFE,  0x5EFF,  0x5F0C,  0x5F0D,  0x5F0E,  0x5F10,  0x62FE,  0x634C,  0x67D2,  0x6F06,  0x7396,  0x767E,
    0x8086,  0x842C,  0x8CAE,  0x8CB3,  0x8D30,  0x9621,  0x9646,  0x964C,  0x9678,  0x96F6,  0xF96B,  0xF973,
    0xF978,  0xF9B2,  0xF9D1,  0xF9D3,  0xF9FD,  0x20001, 0x20064, 0x200E2, 0x20121, 0x2092A, 0x20983, 0x2098C,
    0x2099C, 0x20AEA, 0x20AFD, 0x20B19, 0x22390, 0x22998, 0x23B1B, 0x2626D, 0x2F890,
};
// Marks of punctuation inside words: Word_Break=MidLetter, MidNumLet and Single_Quote.
constexpr std::u32string_view kInsideWords =
    U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55"
    U"\uff07\uff0e\uff1a";

bool is_in_ranges(std::span<const CodeRange> ranges, char32_t code) {
  return std::ranges::any_of(ranges, [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

// Describes a character whose upper case or title case has several characters; 0 ends them. Made by Python from
// [c for c in map(chr, range(0x110000)) if len(c.upper()) > 1 or len(c.title()) > 1], without U+1F80 to U+1FAF.
struct Special {
  char16_t code;
  std::array<char16_t, 3> upper, title;
};
constexpr std::array kSpecial = {
    Special{0xDF, {0x53, 0x53}, {0x53, 0x73}},
    Special{0x149, {0x2BC, 0x4E}, {0x2BC, 0x4E}},
    Special{0x1F0, {0x4A, 0x30C}, {0x4A, 0x30C}},
    Special{0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    Special{0x3B0, {0x3A5, 0x308, 0x301}, {0x3A5, 0x308, 0x301}},
    Special{0x587, {0x535, 0x552}, {0x535, 0x582}},
    Special{0x1E96, {0x48, 0x331}, {0x48, 0x331}},
    Special{0x1E97, {0x54, 0x308}, {0x54, 0x308}},
    Special{0x1E98, {0x57, 0x30A}, {0x57, 0x30A}},
    Special{0x1E99, {0x59, 0x30A}, {0x59, 0x30A}},
    Special{0x1E9A, {0x41, 0x2BE}, {0x41, 0x2BE}},
    Special{0x1F50, {0x3A5, 0x313}, {0x3A5, 0x313}},
    Special{0x1F52, {0x3A5, 0x313, 0x300}, {0x3A5, 0x313, 0x300}},
    Special{0x1F54, {0x3A5, 0x313, 0x301}, {0x3A5, 0x313, 0x301}},
    Special{0x1F56, {0x3A5, 0x313, 0x342}, {0x3A5, 0x313, 0x342}},
    Special{0x1FB2, {0x1FBA, 0x399}, {0x1FBA, 0x345}},
    Special{0x1FB3, {0x391, 0x399}, {0x1FBC}},
    Special{0x1FB4, {0x386, 0x399}, {0x386, 0x345}},
    Special{0x1FB6, {0x391, 0x342}, {0x391, 0x342}},
    Special{0x1FB7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}},
    Special{0x1FBC, {0x391, 0x399}, {0x1FBC}},
    Special{0x1FC2, {0x1FCA, 0x399}, {0x1FCA, 0x345}},
    Special{0x1FC3, {0x397, 0x399}, {0x1FCC}},
    Special{0x1FC4, {0x389, 0x399}, {0x389, 0x345}},
    Special{0x1FC6, {0x397, 0x342}, {0x397, 0x342}},
    Special{0x1FC7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}},
    Special{0x1FCC, {0x397, 0x399}, {0x1FCC}},
    Special{0x1FD2, {0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}},
    Special{0x1FD3, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    Special{0x1FD6, {0x399, 0x342}, {0x399, 0x342}},
    Special{0x1FD7, {0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}},
    Special{0x1FE2, {0x3A5, 0x308, 0x300}, {0x3A5, 0x308, 0x300}},
    Special{0x1FE3, {0x3A5, 0x308, 0x301}, {0x3A5, 0x308, 0x301}},
    Special{0x1FE4, {0x3A1, 0x313}, {0x3A1, 0x313}},
    Special{0x1FE6, {0x3A5, 0x342}, {0x3A5, 0x342}},
    Special{0x1FE7, {0x3A5, 0x308, 0x342}, {0x3A5, 0x308, 0x342}},
    Special{0x1FF2, {0x1FFA, 0x399}, {0x1FFA, 0x345}},
    Special{0x1FF3, {0x3A9, 0x399}, {0x1FFC}},
    Special{0x1FF4, {0x38F, 0x399}, {0x38F, 0x345}},
    Special{0x1FF6, {0x3A9, 0x342}, {0x3A9, 0x342}},
    Special{0x1FF7, {0x3A9, 0x342, 0x399}, {0x3A9, 0x342, 0x345}},
    Special{0x1FFC, {0x3A9, 0x399}, {0x1FFC}},
    Special{0xFB00, {0x46, 0x46}, {0x46, 0x66}},
    Special{0xFB01, {0x46, 0x49}, {0x46, 0x69}},
    Special{0xFB02, {0x46, 0x4C}, {0x46, 0x6C}},
    Special{0xFB03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
    Special{0xFB04, {0x46, 0x46, 0x4C}, {0x46, 0x66, 0x6C}},
    Special{0xFB05, {0x53, 0x54}, {0x53, 0x74}},
    Special{0xFB06, {0x53, 0x54}, {0x53, 0x74}},
    Special{0xFB13, {0x544, 0x546}, {0x544, 0x576}},
    Special{0xFB14, {0x544, 0x535}, {0x544, 0x565}},
    Special{0xFB15, {0x544, 0x53B}, {0x544, 0x56B}},
    Special{0xFB16, {0x54E, 0x546}, {0x54E, 0x576}},
    Special{0xFB17, {0x544, 0x53D}, {0x544, 0x56D}},
};

std::string encode_code(utf8proc_int32_t code) {
  std::string text;
  append_utf8(text, static_cast<char32_t>(code));
  return text;
}

std::string encode_codes(std::span<const char16_t> codes) {
  std::string text;
  for (const char16_t code : codes) {
    if (code != 0) append_utf8(text, code);
  }
  return text;
}

std::string find_upper(char32_t code) {
  // Greek vowels with a breathing and a small iota, which becomes a capital letter.
  if (code >= 0x1F80 && code <= 0x1FAF) {
    const char32_t row = code < 0x1F90 ? 0x1F08 : code < 0x1FA0 ? 0x1F28 : 0x1F68;
    return encode_codes(std::array{static_cast<char16_t>(row + code % 8), char16_t{0x399}});
  }
  const auto found = std::ranges::find(kSpecial, code, &Special::code);
  if (found != kSpecial.end()) return encode_codes(found->upper);
  return encode_code(utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

std::string find_title(char32_t code) {
  const auto found = std::ranges::find(kSpecial, code, &Special::code);
  if (found != kSpecial.end()) return encode_codes(found->title);
  return encode_code(utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

std::string fold_case(char32_t code) {
  std::array<utf8proc_int32_t, 8> folded = {};
  int last = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), folded.data(),
                              static_cast<utf8proc_ssize_t>(folded.size()), UTF8PROC_CASEFOLD, &last);
  std::string text;
  for (utf8proc_ssize_t i = 0; i < count && i < static_cast<utf8proc_ssize_t>(folded.size()); ++i)
    text += encode_code(folded[static_cast<std::size_t>(i)]);
  return text;
}

}  // namespace

bool is_space(char32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  const auto kind = find_category(code);
  return code == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_alphabetic(char32_t code) {
  const auto kind = find_category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) { return find_category(code) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t code) { return is_decimal(code) || is_in_ranges(kOtherDigits, code); }

bool is_numeric(char32_t code) {
  const auto kind = find_category(code);
  return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) ||
         std::ranges::binary_search(kNumericIdeographs, code);
}

bool is_lower(char32_t code) {
  return find_category(code) == UTF8PROC_CATEGORY_LL || (code >= 0x80 && is_in_ranges(kOtherLower, code));
}

bool is_upper(char32_t code) {
  return find_category(code) == UTF8PROC_CATEGORY_LU || (code >= 0x80 && is_in_ranges(kOtherUpper, code));
}

bool is_title(char32_t code) { return find_category(code) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t code) {
  switch (find_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return code == ' ';
    default: return true;
  }
}

bool is_word(char32_t code) { return code == '_' || is_alphabetic(code) || is_numeric(code); }

bool begins_identifier(char32_t code) {
  if (is_alphabetic(code) || find_category(code) == UTF8PROC_CATEGORY_NL)
    return !is_in_ranges(kNotInIdentifiers, code) && !is_in_ranges(kNotFirst, code);
  return code == '_' || is_in_ranges(kOtherFirst, code);
}

bool continues_identifier(char32_t code) {
  switch (find_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  return is_alphabetic(code) ? !is_in_ranges(kNotInIdentifiers, code) : is_in_ranges(kOtherInside, code);
}

bool is_cased(char32_t code) { return is_lower(code) || is_upper(code) || is_title(code); }

bool is_case_ignorable(char32_t code) {
  const auto kind = find_category(code);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK ||
         kInsideWords.find(code) != std::u32string_view::npos;
}

// Decimal digits lie in runs of ten, from 0 to 9.
std::optional<int> find_decimal_value(char32_t code) {
  if (code < 0x80)
    return is_ascii_digit(static_cast<char>(code)) ? std::optional(static_cast<int>(code - '0')) : std::nullopt;
  if (!is_decimal(code)) return std::nullopt;
  int place = 0;
  while (is_decimal(code - static_cast<char32_t>(place) - 1)) ++place;
  return place % 10;
}

std::string map_case(char32_t code, Case to) {
  switch (to) {
    case Case::lower:
      return code == 0x130 ? "i\xcc\x87" : encode_code(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
    case Case::upper: return find_upper(code);
    case Case::title: return find_title(code);
    case Case::swap:
      if (is_upper(code)) return map_case(code, Case::lower);
      return is_lower(code) ? find_upper(code) : encode_code(static_cast<utf8proc_int32_t>(code));
    case Case::fold: break;
  }
  return fold_case(code);
}

}  // namespace poise::jinja
