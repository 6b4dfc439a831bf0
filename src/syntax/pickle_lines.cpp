#include "syntax/pickle.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"

namespace poise::pickle {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr std::string_view kDigits = "0123456789";

// Returns the value of a hexadecimal digit; above 15 for other characters.
unsigned parse_digit(char digit) { return static_cast<unsigned>(parse_hex_digit(digit)); }

std::string_view trim_blanks(std::string_view text) {
  text = text.substr(0, text.find('\0'));  // C code stops at a NUL
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Removes a sign. Returns true for a minus.
bool remove_sign(std::string_view& text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  return is_negative;
}

// Returns the text without single underscores between digits; std::nullopt if there are others.
std::optional<std::string> remove_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || parse_digit(text[i - 1]) > 9 || parse_digit(text[i + 1]) > 9) {
      return std::nullopt;
    }
  }
  return plain;
}

// Removes a prefix such as 0x, and returns the base that it names; 10 if there is none.
unsigned remove_base_prefix(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char letter = static_cast<char>(digits[1] | 0x20);
  const unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  if (base == 10) return base;
  digits.remove_prefix(2);
  if (digits.starts_with('_')) digits.remove_prefix(1);
  return base;
}

// Encodes in two's complement, lowest byte first. Returns an empty text for more than 64 digits, which cost too much
// time.
std::string encode_wide_integer(std::string_view digits, unsigned base, bool is_negative) {
  constexpr std::size_t kMostDigits = 64;
  std::string bytes;
  if (digits.size() > kMostDigits) return bytes;
  for (const char digit : digits) {
    unsigned carry = parse_digit(digit);
    for (char& byte : bytes) {
      const unsigned value = base * static_cast<unsigned char>(byte) + carry;
      byte = static_cast<char>(value);
      carry = value >> 8;
    }
    if (carry != 0) bytes += static_cast<char>(carry);
  }
  bytes += '\0';  // the sign
  if (!is_negative) return bytes;
  unsigned carry = 1;
  for (char& byte : bytes) {
    const unsigned value = (~static_cast<unsigned char>(byte) & 0xffU) + carry;
    byte = static_cast<char>(value);
    carry = value >> 8;
  }
  return bytes;
}

std::optional<std::uint32_t> parse_hex(std::string_view text, std::size_t at, std::size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  for (const char digit : text.substr(at, digits)) {
    if (parse_digit(digit) > 15) return std::nullopt;
    value = value << 4 | parse_digit(digit);
  }
  return value;
}

}  // namespace

std::optional<LineInteger> parse_line_integer(std::string_view text, unsigned base) {
  std::string_view rest = trim_blanks(text);
  const bool is_negative = remove_sign(rest);
  const bool has_prefix = base == 0 && rest.starts_with('0');
  base = base == 0 ? remove_base_prefix(rest) : base;
  std::string digits;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '_' && i > 0 && i + 1 < rest.size() && rest[i - 1] != '_') continue;
    if (parse_digit(rest[i]) >= base) return std::nullopt;
    digits += rest[i];
  }
  if (digits.empty()) return std::nullopt;
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  if (has_prefix && base == 10 && digits != std::string(digits.size(), '0')) return std::nullopt;
  const std::string shown = (is_negative ? "-" : "") + digits.substr(zeros);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(shown.data(), shown.data() + shown.size(), value, static_cast<int>(base));
  if (code == std::errc()) return LineInteger{value, {}};
  return LineInteger{std::nullopt, encode_wide_integer(std::string_view(digits).substr(zeros), base, is_negative)};
}

bool is_ambiguous_integer(std::string_view text) {
  std::string_view rest = trim_blanks(text);
  remove_sign(rest);
  return rest.size() > 1 && rest[0] == '0' && parse_digit(rest[1]) <= 9 &&
         rest.find_first_not_of("0123456789_") == std::string_view::npos &&
         rest.find_first_not_of("0_") != std::string_view::npos;
}

std::optional<double> parse_line_real(std::string_view text) {
  std::string_view rest = trim_blanks(text);
  const bool is_negative = remove_sign(rest);
  const double sign = is_negative ? -1 : 1;
  const std::string word = to_lower_ascii(rest);
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  const auto plain = remove_underscores(word);
  if (!plain) return std::nullopt;
  const std::string_view all = *plain;
  const std::size_t letter = std::min(all.find('e'), all.size());
  const std::string_view mantissa = all.substr(0, letter);
  const std::string_view exponent = all.substr(std::min(letter + 1, all.size()));
  const std::string_view signless = exponent.substr(!exponent.empty() && (exponent[0] == '+' || exponent[0] == '-'));
  const bool is_number = mantissa.find_first_of(kDigits) != std::string_view::npos &&
                         mantissa.find_first_not_of("0123456789.") == std::string_view::npos &&
                         std::ranges::count(mantissa, '.') <= 1;
  const bool has_exponent =
      letter == all.size() || (!signless.empty() && signless.find_first_not_of(kDigits) == std::string_view::npos);
  if (!is_number || !has_exponent) return std::nullopt;
  return sign * parse_double(all).value();
}

std::optional<std::string> decode_line_string(std::string_view text) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  constexpr std::size_t kMostOctal = 3;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      result += text[at++];
      continue;
    }
    if (++at == text.size()) return std::nullopt;
    if (const std::size_t meant = kLetters.find(text[at]); meant != std::string_view::npos) {
      result += kMeanings[meant];
      ++at;
    } else if (text[at] == 'x') {
      const auto code = parse_hex(text, at + 1, 2);
      if (!code) return std::nullopt;
      result += static_cast<char>(*code);
      at += 3;
    } else if (parse_digit(text[at]) < 8) {
      unsigned code = 0;
      for (std::size_t i = 0; i < kMostOctal && at < text.size() && parse_digit(text[at]) < 8; ++i)
        code = code * 8 + parse_digit(text[at++]);
      result += static_cast<char>(code);
    } else {
      result += '\\';
    }
  }
  return result;
}

std::optional<std::string> decode_line_unicode(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const char character = text[at++];
    append_utf8(result, static_cast<unsigned char>(character));
    if (character != '\\' || at == text.size()) continue;
    const std::size_t digits = text[at] == 'u' ? 4 : text[at] == 'U' ? 8 : 0;
    if (digits == 0) {
      append_utf8(result, static_cast<unsigned char>(text[at++]));
      continue;
    }
    const auto code = parse_hex(text, at + 1, digits);
    if (!code || *code > 0x10ffff) return std::nullopt;
    result.pop_back();  // the backslash
    append_utf8(result, static_cast<char32_t>(*code));
    at += 1 + digits;
  }
  return result;
}

}  // namespace poise::pickle
