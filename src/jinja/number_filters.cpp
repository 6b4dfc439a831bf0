// Implements the filters of numbers, and the filters "default" and "attr".
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "jinja/filters.hpp"
#include "jinja/numbers.hpp"
#include "jinja/operators.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

Object filter_int(Interpreter&, const Object& value, Parameters& given) {
  const Object otherwise = given.read("default").value_or(0);
  // Jinja reads the text as a number in base 10 if Python does not know the base.
  const auto base = given.read("base").value_or(10).get_integer();
  if (value.is_undefined()) fail_undefined(value);
  if (const auto whole = value.get_integer()) return *whole;
  auto real = value.get_number();
  if (const Text* const text = value.text()) {
    const auto whole = base ? parse_integer(*text, *base) : std::nullopt;
    if (whole) return *whole;
    real = parse_real(*text);
  }
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

// Adds 1 to a number that is written in decimal digits.
void increment_digits(std::string& digits) {
  for (std::size_t i = digits.size(); i > 0; --i) {
    if (digits[i - 1] != '9') {
      ++digits[i - 1];
      return;
    }
    digits[i - 1] = '0';
  }
  digits.insert(0, 1, '1');
}

// Rounds to a multiple of 10^zeros. Requires: zeros > 0.
double round_to_zeros(double number, std::size_t zeros) {
  const std::string text = fmt::format("{:.60f}", std::abs(number));  // exact from 1 on: a fraction has at most 52 bits
  const std::size_t point = text.find('.');
  if (point < zeros) return std::copysign(0.0, number);
  std::string kept = text.substr(0, point - zeros);
  const char next = text[point - zeros];
  const bool has_more = text.find_first_of("123456789", point - zeros + 1) != std::string::npos;
  const bool is_odd = !kept.empty() && (kept.back() - '0') % 2 != 0;
  if (next > '5' || (next == '5' && (has_more || is_odd))) increment_digits(kept);
  if (kept.empty()) return std::copysign(0.0, number);
  const double rounded = parse_double(fmt::format("{}e{}", kept, zeros)).value();
  if (std::isinf(rounded)) fail("rounded value too large to represent");
  return std::copysign(rounded, number);
}

// Rounds like Python's round(): the exact binary value counts, and halves go to even digits.
double round_real(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits >= 0) return parse_double(fmt::format("{:.{}f}", number, digits)).value();
  if (digits < -308) return std::copysign(0.0, number);
  return round_to_zeros(number, static_cast<std::size_t>(-digits));
}

std::int64_t round_integer(std::int64_t number, std::int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -19) return 0;
  const bool is_negative = number < 0;
  const std::uint64_t magnitude =
      is_negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  std::uint64_t unit = 1;
  for (std::int64_t i = 0; i < -digits; ++i) unit *= 10;
  const std::uint64_t rest = magnitude % unit;
  std::uint64_t rounded = magnitude - rest;
  if (rest > unit - rest || (rest == unit - rest && (rounded / unit) % 2 != 0)) rounded += unit;
  if (rounded > std::uint64_t{1} << 63 || (rounded == std::uint64_t{1} << 63 && !is_negative))
    fail("an integer does not fit 64 bits");
  return static_cast<std::int64_t>(is_negative ? 0 - rounded : rounded);
}

Object round_commonly(const Object& value, const Object& precision) {
  const auto whole = value.get_integer();
  if (precision.is_none()) {
    if (whole) return *whole;
    const auto rounded = truncate_real(std::nearbyint(*value.get_number()));
    if (!rounded) fail("cannot convert float NaN to integer");
    return *rounded;
  }
  const auto digits = precision.get_integer();
  if (!digits) fail(fmt::format("'{}' object cannot be interpreted as an integer", get_type_name(precision)));
  return whole ? Object(round_integer(*whole, *digits)) : Object(round_real(*value.get_number(), *digits));
}

// Computes ceil(value * 10**precision) / 10**precision, or the same with floor, as Python does: powers of ten are
// integers of any size if `precision` is an integer from 0 on, else float64 numbers.
Object round_in_direction(const Object& value, const Object& precision, bool goes_up) {
  const double number = *value.get_number();
  const auto digits = precision.get_integer();
  const auto exponent = precision.get_number();
  if (!exponent) fail(fmt::format("unsupported operand type(s) for **: 'int' and '{}'", get_type_name(precision)));
  const bool is_exact = digits && *digits >= 0;
  if (is_exact && value.get_integer()) return number;
  if (is_exact && *digits > 308) fail("int too large to convert to float");
  const double unit = is_exact ? parse_double(fmt::format("1e{}", *digits)).value() : std::pow(10.0, *exponent);
  const double scaled = number * unit;
  if (!std::isfinite(scaled) || std::isinf(unit)) fail("cannot convert float infinity or NaN to integer");
  const double whole = (goes_up ? std::ceil(scaled) : std::floor(scaled)) + 0.0;  // an integer has no negative zero
  if (unit == 0) fail("float division by zero");
  if (!is_exact) return whole / unit;
  return parse_double(fmt::format("{:.0f}e-{}", whole, *digits)).value();
}

Object filter_round(Interpreter& in, const Object& value, Parameters& given) {
  const Object precision = given.read("precision").value_or(0);
  const Object method = given.read("method").value_or("common");
  const std::string name = to_text(in.budget(), method).bytes;
  if (name != "common" && name != "ceil" && name != "floor") fail("method must be common, ceil or floor");
  for (const Object* const object : {&value, &precision}) {
    if (object->is_undefined()) fail_undefined(*object);
  }
  if (!value.get_number()) fail(fmt::format("type {} doesn't define __round__ method", get_type_name(value)));
  return name == "common" ? round_commonly(value, precision) : round_in_direction(value, precision, name == "ceil");
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
