#include "jinja/text.hpp"

#include <algorithm>
#include <array>

#include <utf8proc.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"

namespace poise::jinja {
namespace {

utf8proc_category_t find_category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

// Has the mappings of a character to other cases. utf8proc cannot map to several characters, as Unicode's
// SpecialCasing.txt does for the characters in kSpecial.
struct Special {
  char32_t code;
  std::string_view lower, upper, title;
};
constexpr std::array kSpecial = {
    Special{0xDF, "\xc3\x9f", "SS", "Ss"},
    Special{0x130, "i\xcc\x87", "\xc4\xb0", "\xc4\xb0"},
    Special{0x149, "\xc5\x89", "\xca\xbcN", "\xca\xbcN"},
    Special{0x1F0, "\xc7\xb0", "J\xcc\x8c", "J\xcc\x8c"},
    Special{0x390, "\xce\x90", "\xce\x99\xcc\x88\xcc\x81", "\xce\x99\xcc\x88\xcc\x81"},
    Special{0x3B0, "\xce\xb0", "\xce\xa5\xcc\x88\xcc\x81", "\xce\xa5\xcc\x88\xcc\x81"},
    Special{0x587, "\xd6\x87", "\xd4\xb5\xd5\x92", "\xd4\xb5\xd6\x82"},
    Special{0xFB00, "\xef\xac\x80", "FF", "Ff"},
    Special{0xFB01, "\xef\xac\x81", "FI", "Fi"},
    Special{0xFB02, "\xef\xac\x82", "FL", "Fl"},
    Special{0xFB03, "\xef\xac\x83", "FFI", "Ffi"},
    Special{0xFB04, "\xef\xac\x84", "FFL", "Ffl"},
    Special{0xFB05, "\xef\xac\x85", "ST", "St"},
    Special{0xFB06, "\xef\xac\x86", "ST", "St"},
};

const Special* find_special(char32_t code) {
  const auto found = std::ranges::find(kSpecial, code, &Special::code);
  return found == kSpecial.end() ? nullptr : &*found;
}

std::string encode(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

std::string change_case(char32_t code, Case how) {
  const Special* const special = find_special(code);
  const auto wide = static_cast<utf8proc_int32_t>(code);
  const auto encode_code = [](utf8proc_int32_t to) { return encode(static_cast<char32_t>(to)); };
  switch (how) {
    case Case::lower: return special != nullptr ? std::string(special->lower) : encode_code(utf8proc_tolower(wide));
    case Case::upper: return special != nullptr ? std::string(special->upper) : encode_code(utf8proc_toupper(wide));
    case Case::title: return special != nullptr ? std::string(special->title) : encode_code(utf8proc_totitle(wide));
    case Case::swap: return change_case(code, is_upper(code) ? Case::lower : Case::upper);
    case Case::fold: break;
  }
  std::array<utf8proc_int32_t, 8> folded = {};
  int last = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      wide, folded.data(), static_cast<utf8proc_ssize_t>(folded.size()), UTF8PROC_CASEFOLD, &last);
  std::string text;
  for (utf8proc_ssize_t i = 0; i < count && i < static_cast<utf8proc_ssize_t>(folded.size()); ++i)
    append_utf8(text, static_cast<char32_t>(folded[static_cast<std::size_t>(i)]));
  return text;
}

bool is_cased(char32_t code) { return is_lower(code) || is_upper(code) || is_title(code); }

// Returns true where a capital sigma becomes a final sigma: at the end of a word.
bool is_word_end(std::string_view text, std::size_t at, std::size_t next) {
  const auto is_ignorable = [](char32_t code) {
    const auto kind = find_category(code);
    return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
           kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || code == '\'' || code == 0x2019 ||
           code == '.' || code == ':' || code == 0xB7;
  };
  bool before = false;
  for (std::size_t begin = at; begin > 0;) {
    do --begin;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
    const char32_t code = decode(text, begin).code;
    if (is_ignorable(code)) continue;
    before = is_cased(code);
    break;
  }
  if (!before) return false;
  for (std::size_t i = next; i < text.size();) {
    const Decoded here = decode(text, i);
    if (!is_ignorable(here.code)) return !is_cased(here.code);
    i = here.next;
  }
  return true;
}

}  // namespace

Text mark_as_input(std::string text) {
  std::string marks(text.size(), '\1');
  return {std::move(text), std::move(marks)};
}

bool is_input(const Text& text, std::size_t at) { return !text.marks.empty() && text.marks[at] != 0; }

void append(Text& to, const Text& from) { append(to, from, 0, from.size()); }

void append(Text& to, const Text& from, std::size_t begin, std::size_t end) {
  if (!to.marks.empty() || !from.marks.empty()) {
    to.marks.resize(to.bytes.size(), '\0');
    if (from.marks.empty()) {
      to.marks.append(end - begin, '\0');
    } else {
      to.marks.append(from.marks, begin, end - begin);
    }
  }
  to.bytes.append(from.bytes, begin, end - begin);
}

void append(Text& to, std::string_view bytes, bool is_input) {
  if (is_input || !to.marks.empty()) {
    to.marks.resize(to.bytes.size(), '\0');
    to.marks.append(bytes.size(), is_input ? '\1' : '\0');
  }
  to.bytes += bytes;
}

Text copy_part(const Text& text, std::size_t begin, std::size_t end) {
  Text result;
  append(result, text, begin, end);
  return result;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::vector<std::size_t> find_characters(std::string_view text) {
  std::vector<std::size_t> begins;
  begins.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  begins.push_back(text.size());
  return begins;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::optional<std::int64_t> parse_index(std::string_view text) {
  const bool is_index = text.size() < 10 && std::ranges::all_of(text, is_ascii_digit);
  return is_index ? parse_number_text<std::int64_t>(text) : std::nullopt;
}

Decoded decode(std::string_view text, std::size_t at) {
  const auto read_byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = read_byte(0);
  if (lead < 0x80) return {lead, at + 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (read_byte(1) & 0x3F), at + 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (read_byte(1) & 0x3F) << 6 | (read_byte(2) & 0x3F), at + 3};
  return {(lead & 0x07) << 18 | (read_byte(1) & 0x3F) << 12 | (read_byte(2) & 0x3F) << 6 | (read_byte(3) & 0x3F),
          at + 4};
}

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

bool is_digit(char32_t code) {
  return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468) || (code >= 0x2474 && code <= 0x247C) ||
         (code >= 0x2488 && code <= 0x2490) || (code >= 0x2776 && code <= 0x277E);
}

bool is_numeric(char32_t code) {
  const auto kind = find_category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t code) { return find_category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA; }
bool is_upper(char32_t code) { return find_category(code) == UTF8PROC_CATEGORY_LU; }
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

void append_cased(Text& to, const Text& from, std::size_t begin, std::size_t end, Case how) {
  for (std::size_t i = begin; i < end;) {
    const Decoded here = decode(from.bytes, i);
    const bool lowers = how == Case::lower || (how == Case::swap && is_upper(here.code));
    const bool is_sigma = lowers && here.code == 0x3A3;
    append(to, is_sigma ? encode(is_word_end(from.bytes, i, here.next) ? 0x3C2 : 0x3C3) : change_case(here.code, how),
           is_input(from, i));
    i = here.next;
  }
}

Text change_case(const Text& text, Case to) {
  Text result;
  if (to != Case::title) {
    append_cased(result, text, 0, text.size(), to);
    return result;
  }
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    append_cased(result, text, i, here.next, in_word ? Case::lower : Case::title);
    in_word = is_cased(here.code);
    i = here.next;
  }
  return result;
}

}  // namespace poise::jinja
