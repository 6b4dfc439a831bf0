#include "syntax/json_number.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "bytes/number_text.hpp"

namespace poise {
namespace {

std::size_t count_digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

struct NumberForm {
  bool valid = false;
  bool integer = false;
  // The place of the first significant digit, left of the point: 2 of 12.3, 0 of 0.5, -1 of 0.05.
  std::int64_t places = 0;
};

// number = [ "-" ] int [ frac ] [ exp ]
NumberForm form_of(std::string_view token) {
  std::string_view rest = token.substr(token.starts_with('-') ? 1 : 0);
  const std::size_t whole = count_digits(rest);
  NumberForm form{.valid = whole > 0 && (whole == 1 || rest.front() != '0'),
                  .places = rest.starts_with('0') ? 0 : static_cast<std::int64_t>(whole)};
  rest.remove_prefix(whole);
  form.integer = rest.empty();
  if (rest.starts_with('.')) {
    const std::size_t fraction = count_digits(rest.substr(1));
    form.valid = form.valid && fraction > 0;
    if (form.places == 0)
      form.places = -static_cast<std::int64_t>(std::min(rest.find_first_not_of('0', 1), fraction + 1) - 1);
    rest.remove_prefix(1 + fraction);
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    const bool negative = rest.starts_with('-');
    if (rest.starts_with('+') || negative) rest.remove_prefix(1);
    const std::size_t length = count_digits(rest);
    form.valid = form.valid && length > 0;
    const std::int64_t exponent =
        number_from<int>(rest.substr(0, length)).value_or(std::numeric_limits<std::int32_t>::max());
    form.places += negative ? -exponent : exponent;
    rest.remove_prefix(length);
  }
  form.valid = form.valid && rest.empty();
  return form;
}

}  // namespace

std::optional<Value> parse_json_number(std::string_view token, std::string_view& problem) {
  const NumberForm form = form_of(token);
  if (!form.valid) {
    problem = "expected a value";
    return std::nullopt;
  }
  if (form.integer) {
    if (const auto number = number_from<std::uint64_t>(token)) return *number;
    if (const auto number = number_from<std::int64_t>(token)) return *number;
  }
  if (const auto number = number_from<double>(token)) return *number;  // an integer of more than 64 bits, too
  if (form.places <= 0) return 0.0;                                    // too small
  problem = "a number beyond double precision";
  return std::nullopt;
}

}  // namespace poise
