#include "formats/huggingface/python_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace poise {
namespace {

constexpr std::array<std::string_view, 3> kNumbers = {"NaN", "Infinity", "-Infinity"};

}  // namespace

std::string without_non_finite(std::string text, std::vector<std::string>& found) {
  if (text.find(kNumbers[0]) == std::string::npos && text.find(kNumbers[1]) == std::string::npos) return text;
  std::string result;
  bool quoted = false;
  for (std::string_view rest = text; !rest.empty();) {
    std::size_t length = 1;
    if (quoted && rest.front() == '\\') {
      length = std::min<std::size_t>(2, rest.size());
    } else if (rest.front() == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      const auto* number = std::ranges::find_if(kNumbers, [&](std::string_view one) { return rest.starts_with(one); });
      if (number != kNumbers.end()) {
        if (std::ranges::find(found, *number) == found.end()) found.emplace_back(*number);
        result += "null";
        rest.remove_prefix(number->size());
        continue;
      }
    }
    result += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

std::vector<std::string> wide_integers(std::string_view text) {
  constexpr std::size_t kMostFound = 5;
  constexpr std::size_t kMostDigits = 18;  // that fit for sure
  std::vector<std::string> found;
  while (!text.empty() && found.size() < kMostFound) {
    if (text.front() == '"') {
      std::size_t end = 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      text.remove_prefix(std::min(end + 1, text.size()));
      continue;
    }
    const std::string_view token = text.substr(0, std::min(text.find_first_not_of("-+.0123456789eE"), text.size()));
    text.remove_prefix(std::max<std::size_t>(token.size(), 1));
    const std::string_view digits = token.substr(token.starts_with('-') ? 1 : 0);
    if (digits.size() <= kMostDigits || digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
    std::uint64_t number = 0;
    std::int64_t negative = 0;
    const char* const end = token.data() + token.size();
    const bool fits = std::from_chars(token.data(), end, number).ec == std::errc() ||
                      std::from_chars(token.data(), end, negative).ec == std::errc();
    if (!fits && std::ranges::find(found, token) == found.end()) found.emplace_back(token);
  }
  return found;
}

}  // namespace poise
