// Writes one value as a format specification asks: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
// The rules are those of CPython's formatter_unicode.c and pystrtod.c.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "jinja/formatting.hpp"

namespace poise::jinja {
namespace {

constexpr std::string_view kRealTypes = "eEfFgG%";

bool is_one_of_types(char type, std::string_view types) { return types.find(type) != std::string_view::npos; }

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Reads the parts of a format specification one by one.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  FormatSpec read(bool is_of_number) {
    FormatSpec spec;
    const bool has_fill = read_align(spec);
    for (const char sign : {'+', '-', ' '}) {
      if (spec.sign == '\0' && skip(sign)) spec.sign = sign;
    }
    spec.drops_negative_zero = skip('z');
    spec.alternate = skip('#');
    if (!has_fill && skip('0')) {
      spec.fill = "0";
      if (spec.align == '\0' && is_of_number) spec.align = '=';
    }
    spec.width = read_number(kMaxWidth).value_or(0);
    if (skip(',')) spec.grouping = ',';
    if (skip('_')) {
      if (spec.grouping != '\0') fail("Cannot specify both ',' and '_'.");
      spec.grouping = '_';
    }
    if (skip('.')) {
      const auto precision = read_number(static_cast<std::size_t>(kMaxPrecision));
      if (!precision) fail("Format specifier missing precision");
      spec.precision = static_cast<int>(*precision);
    }
    if (at_ < text_.size()) spec.type = text_[at_++];
    if (at_ < text_.size()) fail("Invalid format specifier");
    check_grouping(spec);
    return spec;
  }

 private:
  // Returns true if there is a fill character.
  bool read_align(FormatSpec& spec) {
    const std::size_t first = decode(text_, 0).next;
    if (first < text_.size() && is_align(text_[first])) {
      spec.fill = text_.substr(0, first);
      spec.align = text_[first];
      at_ = first + 1;
      return true;
    }
    if (is_align(text_[0])) spec.align = text_[at_++];
    return false;
  }

  bool skip(char c) { return at_ < text_.size() && text_[at_] == c && (++at_, true); }

  std::optional<std::size_t> read_number(std::size_t most) {
    std::optional<std::size_t> value;
    while (at_ < text_.size()) {
      const Decoded here = decode(text_, at_);
      const auto digit = find_decimal_value(here.code);
      if (!digit) break;
      value = value.value_or(0) * 10 + static_cast<std::size_t>(*digit);
      if (*value > most) fail("Too many decimal digits in format string");
      at_ = here.next;
    }
    return value;
  }

  static void check_grouping(const FormatSpec& spec) {
    if (spec.grouping == '\0' || spec.type == '\0' || is_one_of_types(spec.type, "deEfFgG%")) return;
    if (spec.grouping == '_' && is_one_of_types(spec.type, "boxX")) return;
    fail(fmt::format("Cannot specify '{}' with '{}'.", spec.grouping, spec.type));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

[[noreturn]] void fail_type(char type, const Object& value) {
  fail(fmt::format("Unknown format code '{}' for object of type '{}'", type, get_type_name(value)));
}

// Returns the digits of an integer in the base that a format's type names.
std::string format_digits(std::uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return std::to_string(magnitude);
  }
}

// Groups digits from the right, and adds zeros in front up to a width, as _PyUnicode_InsertThousandsGrouping() does.
std::string group_digits(std::string_view digits, char separator, std::size_t group, std::size_t least_width) {
  std::string reversed;
  auto left = static_cast<std::int64_t>(digits.size());
  auto width = static_cast<std::int64_t>(least_width);
  while (true) {
    const std::int64_t size = std::min(static_cast<std::int64_t>(group), std::max({left, width, std::int64_t{1}}));
    for (std::int64_t i = 0; i < size; ++i) reversed += --left >= 0 ? digits[static_cast<std::size_t>(left)] : '0';
    width -= size;
    if (left <= 0 && width <= 0) break;
    reversed += separator;
    --width;
  }
  return {reversed.rbegin(), reversed.rend()};
}

// Writes a number as C's %g does. `adds_zero`: writes at least one digit after the point.
std::string format_general(double magnitude, int precision, bool alternate, bool adds_zero) {
  const std::string text = fmt::format("{:.{}e}", magnitude, precision - 1);
  const std::size_t exponent_at = text.find('e');
  std::string digits = text.substr(0, 1);
  if (exponent_at > 2) digits += text.substr(2, exponent_at - 2);
  if (!alternate) digits.erase(std::max<std::size_t>(digits.find_last_not_of('0') + 1, 1));
  const bool is_small = text[exponent_at + 1] == '-';
  const int exponent = parse_number_text<int>(text.substr(exponent_at + 2)).value();
  const int point = (is_small ? -exponent : exponent) + 1;  // the number is 0.digits * 10^point
  if (point <= -4 || point > precision - (adds_zero ? 1 : 0)) {
    const bool has_point = digits.size() > 1 || alternate;
    return digits.substr(0, 1) + (has_point ? "." : "") + digits.substr(1) + text.substr(exponent_at);
  }
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  const auto whole = static_cast<std::size_t>(point);
  if (digits.size() > whole) return digits.substr(0, whole) + "." + digits.substr(whole);
  digits.append(whole - digits.size(), '0');
  return digits + (adds_zero ? ".0" : alternate ? "." : "");
}

// Returns a number without its sign as PyOS_double_to_string() does. An alternate number always has a point.
std::string format_real_digits(double magnitude, const FormatSpec& spec) {
  const char type = to_lower_ascii(spec.type);
  const int precision = spec.precision.value_or(6);
  if (type == '%') magnitude *= 100;
  std::string text;
  if (!std::isfinite(magnitude)) {
    text = std::isnan(magnitude) ? "nan" : "inf";
  } else if (type == 'f' || type == '%') {
    text = fmt::format("{:.{}f}", magnitude, precision);
    if (spec.alternate && precision == 0) text += '.';
  } else if (type == 'e') {
    text = fmt::format("{:.{}e}", magnitude, precision);
    if (spec.alternate && precision == 0) text.insert(1, ".");
  } else if (type == '\0' && !spec.precision) {
    text = format_repr(magnitude);
    if (spec.alternate && text.find('.') == std::string::npos) text.insert(text.find('e'), ".");
  } else {
    text = format_general(magnitude, std::max(precision, 1), spec.alternate, type == '\0');
  }
  if (is_ascii_upper(spec.type)) std::ranges::transform(text, text.begin(), [](char c) { return to_upper_ascii(c); });
  if (type == '%') text += '%';
  return text;
}

std::string choose_sign(bool is_negative, char sign) {
  if (is_negative) return "-";
  return sign == '+' || sign == ' ' ? std::string(1, sign) : std::string();
}

void append_fill(Text& out, const FormatSpec& spec, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) append(out, spec.fill);
}

// Returns `front` (sign and prefix) and `body`, filled up to the width. `body` begins with `digits` digits, which may
// become groups: these take the place of zeros that fill.
Text fill_number(const std::string& front, Text body, std::size_t digits, const FormatSpec& spec) {
  if (spec.grouping != '\0' && digits > 0) {
    const std::size_t others = front.size() + body.size() - digits;
    const bool has_zeros = spec.fill == "0" && spec.align == '=' && spec.width > others;
    const std::size_t group = is_one_of_types(spec.type, "boxX") ? 4 : 3;
    body.bytes =
        group_digits(body.view().substr(0, digits), spec.grouping, group, has_zeros ? spec.width - others : 0) +
        body.bytes.substr(digits);
  }
  const std::size_t size = front.size() + count_characters(body.bytes);
  const std::size_t missing = spec.width > size ? spec.width - size : 0;
  const char align = spec.align != '\0' ? spec.align : '>';
  const std::size_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const std::size_t inside = align == '=' ? missing : 0;
  Text out;
  append_fill(out, spec, before);
  append(out, front);
  append_fill(out, spec, inside);
  append(out, body);
  append_fill(out, spec, missing - before - inside);
  return out;
}

Text format_integer(Budget& budget, std::int64_t number, const FormatSpec& spec) {
  if (spec.precision) fail("Precision not allowed in integer format specifier");
  if (spec.drops_negative_zero) fail("Negative zero coercion (z) not allowed in integer format specifier");
  if (spec.type != 'c') return fill_integer(budget, number, spec);
  if (spec.sign != '\0') fail("Sign not allowed with integer format specifier 'c'");
  if (spec.alternate) fail("Alternate form (#) not allowed with integer format specifier 'c'");
  return fill_number("", make_character_of(number), 0, spec);
}

void check_text_spec(const FormatSpec& spec) {
  if (spec.grouping != '\0') fail(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  if (spec.sign != '\0') fail("Sign not allowed in string format specifier");
  if (spec.drops_negative_zero) fail("Negative zero coercion (z) not allowed in string format specifier");
  if (spec.alternate) fail("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
}

}  // namespace

Text make_character_of(std::int64_t number) {
  if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) fail("%c arg not in range(0x110000)");
  // A number has no mark, and may come from a message. A character made from it counts as input, so that no message
  // can write a special token in numbers.
  std::string bytes;
  append_utf8(bytes, static_cast<char32_t>(number));
  return mark_as_input(std::move(bytes));
}

Text fill_text(Budget& budget, const Text& text, const FormatSpec& spec) {
  budget.charge(spec.width, 2 * spec.fill.size());
  const std::vector<std::size_t> begins = find_characters(text.bytes);
  std::size_t count = begins.size() - 1;
  if (spec.precision) count = std::min(count, static_cast<std::size_t>(*spec.precision));
  const std::size_t missing = spec.width > count ? spec.width - count : 0;
  const std::size_t before = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  Text out;
  append_fill(out, spec, before);
  append(out, text, 0, begins[count]);
  append_fill(out, spec, missing - before);
  return out;
}

Text fill_integer(Budget& budget, std::int64_t number, const FormatSpec& spec) {
  budget.charge(spec.width + 64, 2 * spec.fill.size());
  const auto bits = static_cast<std::uint64_t>(number);
  std::string digits = format_digits(number < 0 ? 0 - bits : bits, spec.type);
  if (spec.precision && digits.size() < static_cast<std::size_t>(*spec.precision))
    digits.insert(0, static_cast<std::size_t>(*spec.precision) - digits.size(), '0');
  std::string front = choose_sign(number < 0, spec.sign);
  if (spec.alternate && is_one_of_types(spec.type, "boxX")) front += std::string("0") + spec.type;
  const std::size_t count = digits.size();
  return fill_number(front, Text{std::move(digits)}, count, spec);
}

Text fill_real(Budget& budget, double number, const FormatSpec& spec) {
  budget.charge(spec.width + 2048, 2 * spec.fill.size());
  std::string text = format_real_digits(std::abs(number), spec);
  bool is_negative = std::signbit(number) && !std::isnan(number);
  if (spec.drops_negative_zero && std::isfinite(number) &&
      std::string_view(text).substr(0, text.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos)
    is_negative = false;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return fill_number(choose_sign(is_negative, spec.sign), Text{std::move(text)}, digits, spec);
}

Text format_value(Budget& budget, const Object& value, std::string_view text) {
  if (const Text* const given = value.text()) {
    const FormatSpec spec = SpecReader(text).read(false);
    check_text_spec(spec);
    if (spec.type != '\0' && spec.type != 's') fail_type(spec.type, value);
    return fill_text(budget, *given, spec);
  }
  const auto real = value.get_number();
  if (!real) fail(fmt::format("unsupported format string passed to {}.__format__", get_type_name(value)));
  const FormatSpec spec = SpecReader(text).read(true);
  if (spec.type != '\0' && is_one_of_types(spec.type, kRealTypes)) return fill_real(budget, *real, spec);
  if (value.is<double>()) {
    if (spec.type != '\0' && spec.type != 'n') fail_type(spec.type, value);
    return fill_real(budget, *real, spec);
  }
  if (spec.type != '\0' && !is_one_of_types(spec.type, "bcdnoxX")) fail_type(spec.type, value);
  return format_integer(budget, *value.get_integer(), spec);
}

Text escape_non_ascii(Budget& budget, const Text& text) {
  if (is_ascii(text.bytes)) return text;
  budget.charge(text.size(), 4);
  Text out;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    const auto number = static_cast<std::uint32_t>(here.code);
    if (number < 0x80) {
      append(out, text, i, here.next);
    } else {
      append(out,
             number <= 0xFF     ? fmt::format("\\x{:02x}", number)
             : number <= 0xFFFF ? fmt::format("\\u{:04x}", number)
                                : fmt::format("\\U{:08x}", number),
             is_input(text, i));
    }
    i = here.next;
  }
  return out;
}

}  // namespace poise::jinja
