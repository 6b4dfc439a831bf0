#include "syntax/json_number.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "bytes/number_text.hpp"

namespace poise {
namespace {

std::size_t count_digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

struct Shape {
  bool valid = false;
  bool integer = false;
  // The place of the first significant digit, left of the point: 2 of 12.3, 0 of 0.5, -1 of 0.05.
  std::int64_t places = 0;
};

// number = [ "-" ] int [ frac ] [ exp ]
Shape shape_of(std::string_view token) {
  std::string_view rest = token.substr(token.starts_with('-') ? 1 : 0);
  const std::size_t whole = count_digits(rest);
  Shape shape{.valid = whole > 0 && (whole == 1 || rest.front() != '0'),
              .places = rest.starts_with('0') ? 0 : static_cast<std::int64_t>(whole)};
  rest.remove_prefix(whole);
  shape.integer = rest.empty();
  if (rest.starts_with('.')) {
    const std::size_t fraction = count_digits(rest.substr(1));
    shape.valid = shape.valid && fraction > 0;
    if (shape.places == 0)
      shape.places = -static_cast<std::int64_t>(std::min(rest.find_first_not_of('0', 1), fraction + 1) - 1);
    rest.remove_prefix(1 + fraction);
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    const bool negative = rest.starts_with('-');
    if (rest.starts_with('+') || negative) rest.remove_prefix(1);
    const std::size_t length = count_digits(rest);
    shape.valid = shape.valid && length > 0;
    const std::int64_t exponent =
        number_from<int>(rest.substr(0, length)).value_or(std::numeric_limits<std::int32_t>::max());
    shape.places += negative ? -exponent : exponent;
    rest.remove_prefix(length);
  }
  shape.valid = shape.valid && rest.empty();
  return shape;
}

}  // namespace

std::optional<Value> parse_json_number(std::string_view token, std::string_view& problem) {
  const Shape shape = shape_of(token);
  if (!shape.valid) {
    problem = "expected a value";
    return std::nullopt;
  }
  if (shape.integer) {
    if (const auto number = number_from<std::uint64_t>(token)) return *number;
    if (const auto number = number_from<std::int64_t>(token)) return *number;
  }
  if (const auto number = number_from<double>(token)) return *number;  // an integer of more than 64 bits, too
  if (shape.places <= 0) return 0.0;                                   // too small
  problem = "a number beyond double precision";
  return std::nullopt;
}

}  // namespace poise
