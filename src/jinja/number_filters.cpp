// Implements the filters of numbers, and the filters "default" and "attr".
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "jinja/filters.hpp"
#include "jinja/operators.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

// Removes single underscores between letters or digits; std::nullopt for a text with other underscores.
std::optional<std::string> remove_underscores(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (i == 0 || i + 1 == text.size() || !is_ascii_alphanumeric(text[i - 1]) || !is_ascii_alphanumeric(text[i + 1]))
        return std::nullopt;
    } else {
      digits += text[i];
    }
  }
  return digits;
}

// Converts a text to an integer like Python's int(text, base), with three differences: digits are ASCII, an integer
// beyond 2^63 - 1 or -(2^63 - 1) throws, and base 0 also allows zeros before a decimal number. Returns std::nullopt for
// other texts.
std::optional<std::int64_t> parse_integer(const Text& given, std::int64_t base) {
  const Text text = strip_text(given, nullptr, Sides::both);
  std::string_view rest = text.view();
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.size() > 2 && rest[0] == '0') {
    const char letter = static_cast<char>(rest[1] | 0x20);
    const std::int64_t of_letter = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (of_letter != 0 && (base == of_letter || base == 0)) {
      base = of_letter;
      rest.remove_prefix(2);
      if (rest.starts_with('_')) rest.remove_prefix(1);
    }
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36, or 0");
  const auto digits = remove_underscores(rest);
  if (!digits || digits->empty()) return std::nullopt;
  std::int64_t number = 0;
  for (const char c : *digits) {
    const char small = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : small >= 'a' && small <= 'z' ? small - 'a' + 10 : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(number, base, &number) || __builtin_add_overflow(number, digit, &number))
      fail("an integer does not fit 64 bits");
  }
  return is_negative ? -number : number;
}

// Converts a text to a number like Python's float(text), but digits are ASCII, and single underscores may stand between
// any letters and digits. Returns std::nullopt for other texts.
std::optional<double> parse_real(const Text& given) {
  const Text text = strip_text(given, nullptr, Sides::both);
  const auto digits = remove_underscores(text.view());
  if (!digits || digits->find('(') != std::string::npos) return std::nullopt;  // "nan(1)" is C's spelling
  const bool has_plus = digits->starts_with('+') && !digits->starts_with("+-");
  return parse_double(std::string_view(*digits).substr(has_plus ? 1 : 0));
}

std::optional<std::int64_t> truncate_real(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (std::isinf(number)) return std::nullopt;
  if (!(std::abs(number) < 0x1p63)) fail("an integer does not fit 64 bits");
  return static_cast<std::int64_t>(number);
}

Object filter_int(Interpreter&, const Object& value, Parameters& given) {
  const Object otherwise = given.read("default").value_or(0);
  const std::int64_t base = given.read_integer("base", 10);
  if (value.is_undefined()) fail_undefined(value);
  if (const auto whole = value.get_integer()) return *whole;
  if (const auto* real = value.get_if<double>()) {
    if (std::isinf(*real)) fail("cannot convert float infinity to integer");
    const auto whole = truncate_real(*real);
    return whole ? Object(*whole) : otherwise;
  }
  if (value.text() == nullptr) return otherwise;
  if (const auto whole = parse_integer(*value.text(), base)) return *whole;
  const auto real = parse_real(*value.text());
  const auto whole = real ? truncate_real(*real) : std::nullopt;
  return whole ? Object(*whole) : otherwise;
}

Object filter_float(Interpreter&, const Object& value, Parameters& given) {
  const Object otherwise = given.read("default").value_or(0.0);
  if (value.is_undefined()) fail_undefined(value);
  if (const auto number = value.get_number()) return *number;
  if (value.text() == nullptr) return otherwise;
  const auto real = parse_real(*value.text());
  return real ? Object(*real) : otherwise;
}

Object filter_abs(Interpreter&, const Object& value, Parameters&) {
  if (const auto* real = value.get_if<double>()) return std::abs(*real);
  const auto whole = value.get_integer();
  if (value.is_undefined()) fail_undefined(value);
  if (!whole) fail(fmt::format("bad operand type for abs(): '{}'", get_type_name(value)));
  return *whole < 0 ? apply_sign(*whole, true) : Object(*whole);
}

// Rounds like Python's round(): the exact binary value counts, and halves go to even digits. Below -22 digits the unit,
// a power of ten, is not exact, so the result may differ from Python's in the last bits.
double round_real(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits >= 0) return parse_double(fmt::format("{:.{}f}", number, digits)).value();
  if (digits < -308) return std::copysign(0.0, number);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / unit) * unit;
}

std::int64_t round_integer(std::int64_t number, std::int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  std::int64_t unit = 1;
  for (std::int64_t i = 0; i < -digits; ++i) unit *= 10;
  std::int64_t rest = number % unit;
  std::int64_t down = number - rest;
  if (rest < 0) {
    rest += unit;
    down -= unit;
  }
  const bool goes_up = rest > unit - rest || (rest == unit - rest && (down / unit) % 2 != 0);
  return goes_up ? down + unit : down;
}

Object filter_round(Interpreter& in, const Object& value, Parameters& given) {
  const std::int64_t precision = given.read_integer("precision", 0);
  const Object method = given.read("method").value_or("common");
  const std::string name = to_text(in.budget(), method).bytes;
  if (name != "common" && name != "ceil" && name != "floor") fail("method must be common, ceil or floor");
  if (value.is_undefined()) fail_undefined(value);
  const auto number = value.get_number();
  if (!number) fail(fmt::format("type {} doesn't define __round__ method", get_type_name(value)));
  if (name == "common") {
    if (const auto whole = value.get_integer()) return round_integer(*whole, precision);
    return round_real(*number, precision);
  }
  if (std::abs(static_cast<double>(precision)) > 300)
    fail(fmt::format("round() got the precision {}, expected -300 to 300", precision));
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double whole = name == "ceil" ? std::ceil(*number * unit) : std::floor(*number * unit);
  return (whole + 0.0) / unit;  // Python rounds to an integer, which has no negative zero
}

Object filter_default(Interpreter&, const Object& value, Parameters& given) {
  const Object otherwise = given.read("default_value").value_or("");
  const bool by_truth = given.read_truth("boolean", false);
  return value.is_undefined() || (by_truth && !is_true(value)) ? otherwise : value;
}

Object filter_attr(Interpreter& in, const Object& value, Parameters& given) {
  const Object name = given.require("name");
  if (name.text() == nullptr) fail("the name of an attribute has to be a text");
  // Items of a dictionary are not attributes.
  if (value.is<DictPtr>() && (*value.get_if<DictPtr>())->find(name.text()->bytes) != nullptr &&
      in.find_attribute(make_dict(Dict()), name.text()->bytes).is_undefined()) {
    return make_undefined(fmt::format("'dict object' has no attribute '{}'", name.text()->bytes));
  }
  return in.find_attribute(value, name.text()->bytes);
}

Object filter_filesizeformat(Interpreter&, const Object& value, Parameters& given) {
  const bool is_binary = given.read_truth("binary", false);
  const auto number = value.text() != nullptr ? parse_real(*value.text()) : value.get_number();
  if (!number || !(std::abs(*number) < 1e300)) fail("filter 'filesizeformat' needs a number");
  const double base = is_binary ? 1024 : 1000;
  if (*number == 1) return "1 Byte";
  if (*number < base) return Text{fmt::format("{} Bytes", static_cast<std::int64_t>(std::max(*number, -9e18)))};
  double unit = base * base;
  std::size_t i = 0;
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  for (; i + 1 < kPrefixes.size() && *number >= unit; ++i) unit *= base;
  const char prefix = is_binary && i == 0 ? 'K' : kPrefixes[i];
  return Text{fmt::format("{:.1f} {}{}B", base * *number / unit, prefix, is_binary ? "i" : "")};
}

}  // namespace

const Filters& get_number_filters() {
  static const Filters kFilters = {
      {"int", filter_int},         {"float", filter_float},
      {"abs", filter_abs},         {"round", filter_round},
      {"default", filter_default}, {"d", filter_default},
      {"attr", filter_attr},       {"filesizeformat", filter_filesizeformat},
  };
  return kFilters;
}

}  // namespace poise::jinja
