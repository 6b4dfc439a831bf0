#include "formats/huggingface/front_matter.hpp"

#include <vector>

namespace poise {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The lines between the first line "---" and the next.
std::vector<std::string_view> front_matter_lines(std::string_view readme) {
  std::vector<std::string_view> lines;
  if (readme.starts_with("\xef\xbb\xbf")) readme.remove_prefix(3);  // a byte order mark
  bool inside = false;
  while (!readme.empty()) {
    const auto end = readme.find('\n');
    const std::string_view line = readme.substr(0, end);
    readme = end == std::string_view::npos ? std::string_view() : readme.substr(end + 1);
    const bool fence = trim(line) == "---";
    if (inside && fence) return lines;
    if (!inside && !fence) return {};
    if (inside) lines.push_back(line);
    inside = true;
  }
  return {};
}

std::string_view unquote(std::string_view text) {
  text = trim(text);
  for (const char quote : {'"', '\''}) {
    if (text.starts_with(quote)) {
      const auto end = text.find(quote, 1);
      return end == std::string_view::npos ? text.substr(1) : text.substr(1, end - 1);
    }
  }
  const auto comment = text.find(" #");
  return trim(text.substr(0, comment));
}

// "a", or the first item of "[a, b]".
std::string_view first_scalar(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('[')) return unquote(text);
  text.remove_prefix(1);
  return unquote(text.substr(0, text.find_first_of(",]")));
}

}  // namespace

std::string front_matter_value(std::string_view readme, std::string_view key) {
  const auto lines = front_matter_lines(readme);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(key) || lines[i].substr(key.size(), 1) != ":") continue;
    const std::string_view value = first_scalar(lines[i].substr(key.size() + 1));
    if (!value.empty()) return std::string(value);
    const std::string_view next = i + 1 < lines.size() ? trim(lines[i + 1]) : std::string_view();
    return next.starts_with("- ") ? std::string(unquote(next.substr(2))) : std::string();
  }
  return {};
}

}  // namespace poise
