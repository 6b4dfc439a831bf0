#include "syntax/wide_integers.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"

namespace poise {

std::vector<std::string_view> wide_integers(std::string_view text) {
  constexpr std::size_t kMostFound = 5;
  constexpr std::size_t kMostDigits = 18;  // that fit for sure
  std::vector<std::string_view> found;
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
    if (!fits && std::ranges::find(found, token) == found.end()) found.push_back(token);
  }
  return found;
}

std::string short_integer(std::string_view digits) {
  constexpr std::size_t kMost = 40;
  return shortened(digits, kMost) + (digits.size() > kMost ? fmt::format(" ({} digits)", digits.size()) : "");
}

Value parse_exact_json(std::string_view text, const std::string& name) {
  Value value = parse_json(text, name);
  const std::vector<std::string_view> wide = wide_integers(text);
  if (wide.empty()) return value;
  throw Error(ErrorKind::invalid_file,
              fmt::format("JSON: the integer {} has more than 64 bits", short_integer(wide.front())), name,
              static_cast<std::uint64_t>(wide.front().data() - text.data()));
}

}  // namespace poise
