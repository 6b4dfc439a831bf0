#include "jinja/numbers.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "jinja/budget.hpp"

namespace poise::jinja {
namespace {

// Returns a text as Python's int() and float() read it: with decimal digits of all scripts as ASCII digits, and without
// white space at its ends. A question mark stands for other characters.
std::string normalize_number(std::string_view text) {
  if (is_ascii(text)) return std::string(trim_ascii_spaces(text));
  std::string digits;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    const auto digit = find_decimal_value(here.code);
    if (here.code < 0x80) {
      digits += text[i];
    } else {
      digits += digit ? static_cast<char>('0' + *digit) : is_space(here.code) ? ' ' : '?';
    }
    i = here.next;
  }
  return std::string(trim_ascii_spaces(digits));
}

// Python reads no decimal number with more digits.
constexpr std::size_t kMostDigits = 4300;

// Removes the prefix of an integer in base 16, 8 or 2. Returns the base of the rest.
std::int64_t read_base(std::string_view& rest, std::int64_t base) {
  const char letter = rest.size() > 1 && rest[0] == '0' ? to_lower_ascii(rest[1]) : '\0';
  const std::int64_t of_letter = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (of_letter == 0 || (base != of_letter && base != 0)) return base == 0 ? 10 : base;
  rest.remove_prefix(2);
  if (rest.starts_with('_')) rest.remove_prefix(1);
  return of_letter;
}

}  // namespace

std::optional<std::int64_t> parse_integer(const Text& given, std::int64_t given_base) {
  if (given_base != 0 && (given_base < 2 || given_base > 36)) return std::nullopt;
  const std::string text = normalize_number(given.bytes);
  std::string_view rest = text;
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::int64_t base = read_base(rest, given_base);
  std::int64_t number = 0;  // negative, because the least integer has no positive counterpart
  bool fits = true;
  std::size_t count = 0;
  bool is_after_digit = false;
  for (const char c : rest) {
    if (c == '_' && is_after_digit) {
      is_after_digit = false;
      continue;
    }
    const char small = to_lower_ascii(c);
    const int digit = is_ascii_digit(c) ? c - '0' : is_ascii_lower(small) ? small - 'a' + 10 : 99;
    if (digit >= base) return std::nullopt;
    fits = fits && !__builtin_mul_overflow(number, base, &number) && !__builtin_sub_overflow(number, digit, &number);
    ++count;
    is_after_digit = true;
  }
  if (!is_after_digit || (count > kMostDigits && (base & (base - 1)) != 0)) return std::nullopt;
  if (given_base == 0 && base == 10 && rest[0] == '0' && (number != 0 || !fits)) return std::nullopt;
  if (!fits || (!is_negative && number == std::numeric_limits<std::int64_t>::min()))
    fail("an integer does not fit 64 bits");
  return is_negative ? number : -number;
}

std::optional<double> parse_real(const Text& given) {
  const std::string text = normalize_number(given.bytes);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_ascii_digit(text[i - 1]) || !is_ascii_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  if (digits.find('(') != std::string::npos) return std::nullopt;  // "nan(1)" is C's spelling
  const bool has_plus = digits.starts_with('+') && !digits.starts_with("+-");
  return parse_double(std::string_view(digits).substr(has_plus ? 1 : 0));
}

std::optional<std::int64_t> truncate_real(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (std::isinf(number)) fail("cannot convert float infinity to integer");
  if (!(number >= -0x1p63 && number < 0x1p63)) fail("an integer does not fit 64 bits");
  return static_cast<std::int64_t>(number);
}

}  // namespace poise::jinja
