#include "formats/huggingface/python_json.hpp"

#include <algorithm>
#include <array>
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
      const auto* number =
          std::ranges::find_if(kNumbers, [&](std::string_view number_text) { return rest.starts_with(number_text); });
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

}  // namespace poise
