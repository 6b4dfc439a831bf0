#include "formats/huggingface/front_matter.hpp"

#include <optional>
#include <vector>

namespace poise {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The lines between the first line "---" and the next one.
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

bool is_null(std::string_view text) { return text == "~" || text == "null" || text == "Null" || text == "NULL"; }

// The quoted text at the front, without what follows it.
std::string unquote(std::string_view text) {
  const char quote = text.front();
  std::string result;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"' && i + 1 < text.size()) {
      result += text[++i];
    } else if (text[i] != quote) {
      result += text[i];
    } else if (quote == '\'' && text.substr(i + 1).starts_with('\'')) {
      result += text[++i];
    } else {
      break;
    }
  }
  return result;
}

std::string scalar(std::string_view text) {
  text = trim(text);
  if (text.starts_with('"') || text.starts_with('\'')) return unquote(text);
  if (text.starts_with('#')) return {};
  text = trim(text.substr(0, text.find(" #")));
  return is_null(text) ? std::string() : std::string(text);
}

using Lines = std::vector<std::string_view>;

bool is_indented(std::string_view line) { return line.starts_with(' ') || trim(line).empty(); }

// The text of a block ("|" keeps its lines, ">" joins them); a line without indentation ends it.
std::string block(const Lines& lines, std::size_t first, char between) {
  std::string text;
  for (std::size_t i = first; i < lines.size() && is_indented(lines[i]); ++i) {
    const std::string_view line = trim(lines[i]);
    if (!text.empty() && !line.empty()) text += between;
    text += line;
  }
  return text;
}

// The first item of "[a, b]", which may continue on further lines.
std::string first_of_flow(std::string_view text, const Lines& lines, std::size_t next) {
  std::string all(text.substr(1));
  for (std::size_t i = next;
       i < lines.size() && trim(all.substr(0, all.find_first_of(",]"))).empty() && all.find(']') == std::string::npos;
       ++i) {
    all += ' ';
    all += trim(lines[i]);
  }
  const std::string_view item = trim(all);
  return item.starts_with('"') || item.starts_with('\'') ? unquote(item)
                                                         : scalar(item.substr(0, item.find_first_of(",]")));
}

// The text after the colon on a line with this key; nothing for other lines.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  if (line.starts_with('"') || line.starts_with('\'')) {
    const std::size_t end = line.find(line.front(), 1);
    if (end == std::string_view::npos || line.substr(1, end - 1) != key) return std::nullopt;
    line.remove_prefix(end + 1);
  } else {
    if (!line.starts_with(key)) return std::nullopt;
    line.remove_prefix(key.size());
  }
  line = trim(line);
  if (!line.starts_with(':')) return std::nullopt;
  return trim(line.substr(1));
}

}  // namespace

std::string front_matter_value(std::string_view readme, std::string_view key) {
  const Lines lines = front_matter_lines(readme);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto value = value_of(lines[i], key);
    if (!value) continue;
    if (value->starts_with('[')) return first_of_flow(*value, lines, i + 1);
    if (value->starts_with('|') || value->starts_with('>'))
      return block(lines, i + 1, value->front() == '|' ? '\n' : ' ');
    if (const std::string text = scalar(*value); !text.empty()) return text;
    const std::string_view next = i + 1 < lines.size() ? trim(lines[i + 1]) : std::string_view();
    return next.starts_with("- ") ? scalar(next.substr(2)) : std::string();
  }
  return {};
}

}  // namespace poise
