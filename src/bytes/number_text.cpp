#include "bytes/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>

#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"

namespace poise {

template <typename Number>
std::optional<Number> parse_number_text(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

template std::optional<int> parse_number_text(std::string_view);
template std::optional<unsigned> parse_number_text(std::string_view);
template std::optional<std::int64_t> parse_number_text(std::string_view);
template std::optional<std::uint64_t> parse_number_text(std::string_view);
template std::optional<float> parse_number_text(std::string_view);
template std::optional<double> parse_number_text(std::string_view);

namespace {

std::size_t count_digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

// Returns true if a decimal number without a sign is 1 or more. Requires: std::from_chars() reads the whole text.
bool is_at_least_one(std::string_view text) {
  const std::size_t leading = std::min(text.find_first_not_of('0'), text.size());
  text.remove_prefix(leading);
  const std::size_t whole = count_digits(text);
  // Places count from the point to the left: the first significant digit is at 2 in 12.3, 0 in 0.5 and -1 in 0.05.
  auto place = static_cast<std::int64_t>(whole);
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    if (whole == 0) place = -static_cast<std::int64_t>(std::min(text.find_first_not_of('0', 1), text.size()) - 1);
    text.remove_prefix(1 + count_digits(text.substr(1)));
  }
  if (text.empty()) return place > 0;
  text.remove_prefix(1);  // the "e"
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const std::int64_t exponent = parse_number_text<int>(text).value_or(std::numeric_limits<int>::max());
  return (is_negative ? place - exponent : place + exponent) > 0;
}

}  // namespace

std::optional<double> parse_double(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool is_negative = text.starts_with('-');
    number = is_at_least_one(text.substr(is_negative ? 1 : 0)) ? std::numeric_limits<double>::infinity() : 0.0;
    return is_negative ? -number : number;
  }
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

namespace {

// Returns part / 10^digits of a unit, rounded down. Requires: part < 10^digits <= 10^9.
std::uint64_t compute_share(std::uint64_t part, std::size_t digits, std::uint64_t unit) {
  std::uint64_t whole = 1;
  for (std::size_t i = 0; i < digits; ++i) whole *= 10;
  return part * (unit / whole) + part * (unit % whole) / whole;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgtpe";
  constexpr std::size_t kMostDecimals = 9;
  const std::size_t digits = count_digits(text);
  const auto number = parse_number_text<std::uint64_t>(text.substr(0, digits));
  if (!number) return std::nullopt;
  text.remove_prefix(digits);
  std::string_view decimals;
  if (text.starts_with('.')) {
    decimals = text.substr(1, count_digits(text.substr(1)));
    if (decimals.empty() || decimals.size() > kMostDecimals) return std::nullopt;
    text.remove_prefix(1 + decimals.size());
  }
  std::string unit = to_lower_ascii(text);
  if (unit.starts_with(' ')) unit.erase(0, 1);
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.empty()) return decimals.empty() ? number : std::nullopt;
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i")) return std::nullopt;
  std::uint64_t bytes = 1;  // up to 2^60
  for (std::size_t i = 0; i <= power; ++i) bytes *= unit.size() > 1 ? 1024 : 1000;
  const auto size = checked_mul(*number, bytes);
  if (!size || decimals.empty()) return size;
  return checked_add(*size, compute_share(*parse_number_text<std::uint64_t>(decimals), decimals.size(), bytes));
}

}  // namespace poise
