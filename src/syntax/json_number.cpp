#include "syntax/json_number.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "bytes/number_text.hpp"

namespace poise {
namespace {

std::size_t count_digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

struct NumberForm {
  bool valid = false;
  bool integer = false;
};

// number = [ "-" ] int [ frac ] [ exp ]
NumberForm form_of(std::string_view token) {
  std::string_view rest = token.substr(token.starts_with('-') ? 1 : 0);
  const std::size_t whole = count_digits(rest);
  NumberForm form{.valid = whole > 0 && (whole == 1 || rest.front() != '0')};
  rest.remove_prefix(whole);
  form.integer = rest.empty();
  if (rest.starts_with('.')) {
    const std::size_t fraction = count_digits(rest.substr(1));
    form.valid = form.valid && fraction > 0;
    rest.remove_prefix(1 + fraction);
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
    const std::size_t length = count_digits(rest);
    form.valid = form.valid && length > 0;
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
  // An integer of more than 64 bits, too.
  if (const auto number = parse_double(token); number && std::isfinite(*number)) return *number;
  problem = "a number beyond double precision";
  return std::nullopt;
}

}  // namespace poise
