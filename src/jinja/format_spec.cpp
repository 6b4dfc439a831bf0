// Python's format specifications, for str.format() and the operator %.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "jinja/formatting.hpp"

namespace poise::jinja {
namespace {

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Digits of an integer in a base, without sign.
std::string digits_of(std::uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return std::to_string(magnitude);
  }
}

std::string with_groups(const std::string& digits, char separator) {
  const std::size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string real_digits(double magnitude, const FormatSpec& spec) {
  const int precision = spec.precision.value_or(6);
  std::string text;
  switch (spec.type) {
    case 'e': text = fmt::format("{:.{}e}", magnitude, precision); break;
    case 'E': text = fmt::format("{:.{}E}", magnitude, precision); break;
    case 'g': text = fmt::format("{:.{}g}", magnitude, std::max(precision, 1)); break;
    case 'G': text = fmt::format("{:.{}G}", magnitude, std::max(precision, 1)); break;
    case '%': text = fmt::format("{:.{}f}%", magnitude * 100, precision); break;
    case '\0':
      if (!spec.precision) return repr(magnitude);
      text = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      break;
    default: text = fmt::format("{:.{}f}", magnitude, precision);
  }
  return text;
}

std::string sign_of(bool is_negative, char sign) {
  if (is_negative) return "-";
  return sign == '+' || sign == ' ' ? std::string(1, sign) : std::string();
}

// Sign and prefix, then digits, filled up to the width.
Text filled(const std::string& front, const std::string& digits, const FormatSpec& spec, char usual) {
  const std::size_t size = front.size() + digits.size();
  const std::size_t missing = spec.width > size ? spec.width - size : 0;
  const char align = spec.align != '\0' ? spec.align : usual;
  const auto fill = [&](std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += spec.fill;
    return all;
  };
  if (align == '=') return Text{front + fill(missing) + digits};
  if (align == '<') return Text{front + digits + fill(missing)};
  if (align == '^') return Text{fill(missing / 2) + front + digits + fill(missing - missing / 2)};
  return Text{fill(missing) + front + digits};
}

Text formatted_text(const Text& text, const FormatSpec& spec) {
  if (spec.type != '\0' && spec.type != 's')
    fail(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  if (spec.grouping != '\0') fail(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  const std::vector<std::size_t> begins = characters(text.bytes);
  std::size_t count = begins.size() - 1;
  if (spec.precision) count = std::min(count, static_cast<std::size_t>(*spec.precision));
  const std::size_t missing = spec.width > count ? spec.width - count : 0;
  const std::size_t before = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  Text out;
  for (std::size_t i = 0; i < before; ++i) append(out, spec.fill);
  append(out, text, 0, begins[count]);
  for (std::size_t i = before; i < missing; ++i) append(out, spec.fill);
  return out;
}

}  // namespace

FormatSpec format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t i = 0;
  if (!text.empty()) {
    const std::size_t first = decode(text, 0).next;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      i = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[i++];
    }
  }
  const auto has = [&](char c) { return i < text.size() && text[i] == c; };
  const auto number = [&](std::size_t most) {
    std::size_t value = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
      value = value * 10 + static_cast<std::size_t>(text[i++] - '0');
      if (value > most) fail("Too many decimal digits in format string");
    }
    return value;
  };
  if (has('+') || has('-') || has(' ')) spec.sign = text[i++];
  if (has('#')) {
    spec.alternate = true;
    ++i;
  }
  if (has('0')) {
    ++i;
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = number(kMaxWidth);
  if (has(',') || has('_')) spec.grouping = text[i++];
  if (has('.')) {
    ++i;
    if (i == text.size() || text[i] < '0' || text[i] > '9') fail("Format specifier missing precision");
    spec.precision = static_cast<int>(number(kMaxPrecision));
  }
  if (i < text.size()) spec.type = text[i++];
  if (i < text.size()) fail("Invalid format specifier");
  return spec;
}

Text formatted(Budget& budget, const Object& value, const FormatSpec& spec) {
  budget.charge(spec.width + 64);
  if (const Text* const text = value.text()) return formatted_text(*text, spec);
  const bool wants_real = spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (const auto whole = value.integer(); whole && !wants_real && !(value.is<bool>() && spec.type == '\0')) {
    if (spec.type != '\0' && std::string_view("dxXobnc").find(spec.type) == std::string_view::npos)
      fail(fmt::format("Unknown format code '{}' for object of type 'int'", spec.type));
    if (spec.type == 'c') {
      if (*whole < 0 || *whole > 0x10FFFF || (*whole >= 0xD800 && *whole < 0xE000))
        fail("%c arg not in range(0x110000)");
      // A number has no mark of its own and may be a message's: a character made from it counts as input, so that no
      // message spells a special token in numbers.
      std::string bytes;
      append_code(bytes, static_cast<char32_t>(*whole));
      const Text character = marked(std::move(bytes));
      FormatSpec as_text = spec;
      as_text.type = '\0';
      return formatted_text(character, as_text);
    }
    const std::uint64_t magnitude =
        *whole < 0 ? 0 - static_cast<std::uint64_t>(*whole) : static_cast<std::uint64_t>(*whole);
    std::string digits = digits_of(magnitude, spec.type);
    if (spec.precision && digits.size() < static_cast<std::size_t>(*spec.precision))
      digits.insert(0, static_cast<std::size_t>(*spec.precision) - digits.size(), '0');
    if (spec.grouping != '\0') digits = with_groups(digits, spec.grouping);
    const bool has_prefix = spec.alternate && std::string_view("xXob").find(spec.type) != std::string_view::npos;
    return filled(sign_of(*whole < 0, spec.sign) + (has_prefix ? std::string("0") + spec.type : ""), digits, spec, '>');
  }
  const auto real = value.number();
  if (real && !value.is<bool>()) {
    if (spec.type != '\0' && !wants_real)
      fail(fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
    std::string digits = real_digits(std::abs(*real), spec);
    if (spec.grouping != '\0') digits = with_groups(digits, spec.grouping);
    return filled(sign_of(std::signbit(*real) && !std::isnan(*real), spec.sign), digits, spec, '>');
  }
  if (wants_real && value.is<bool>()) return formatted(budget, *real, spec);
  return formatted_text(to_text(budget, value), spec);
}

}  // namespace poise::jinja
