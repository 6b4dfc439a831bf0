#include "bytes/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>

#include "bytes/checked.hpp"

namespace poise {

template <typename Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

template std::optional<int> number_from(std::string_view);
template std::optional<unsigned> number_from(std::string_view);
template std::optional<std::int64_t> number_from(std::string_view);
template std::optional<std::uint64_t> number_from(std::string_view);
template std::optional<float> number_from(std::string_view);
template std::optional<double> number_from(std::string_view);

std::string to_lower_ascii(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return small;
}

std::optional<std::uint64_t> size_from(std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgtpe";
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = number_from<std::uint64_t>(text.substr(0, digits));
  if (!number) return std::nullopt;
  std::string unit = to_lower_ascii(text.substr(digits));
  if (unit.starts_with(' ')) unit.erase(0, 1);
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.empty()) return number;
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i")) return std::nullopt;
  std::optional<std::uint64_t> size = number;
  for (std::size_t i = 0; i <= power && size; ++i) size = checked_mul(*size, unit.size() > 1 ? 1024 : 1000);
  return size;
}

}  // namespace poise
