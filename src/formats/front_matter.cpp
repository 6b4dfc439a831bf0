#include "formats/front_matter.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "bytes/utf8.hpp"
#include "io/source_range.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kMostFrontMatter = 1 << 20;
constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Returns the lines between the first line "---" and the next one.
std::vector<std::string_view> list_front_matter_lines(std::string_view readme) {
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

// Returns the quoted text at the front, without what follows it.
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

std::string parse_scalar(std::string_view text) {
  text = trim(text);
  if (text.starts_with('"') || text.starts_with('\'')) return unquote(text);
  if (text.starts_with('#')) return {};
  text = trim(text.substr(0, text.find(" #")));
  return is_null(text) ? std::string() : std::string(text);
}

using Lines = std::vector<std::string_view>;

bool is_indented(std::string_view line) { return line.starts_with(' ') || trim(line).empty(); }

// Returns the text of a block ("|" keeps its lines, ">" joins them); a line without indentation ends it.
std::string join_block(const Lines& lines, std::size_t first, char between) {
  std::string text;
  for (std::size_t i = first; i < lines.size() && is_indented(lines[i]); ++i) {
    const std::string_view line = trim(lines[i]);
    if (!text.empty() && !line.empty()) text += between;
    text += line;
  }
  return text;
}

// Returns the items of "[a, b]", which may continue on further lines. Returns no items if the end is missing.
std::vector<std::string> parse_flow_items(std::string_view text, const Lines& lines, std::size_t next) {
  std::vector<std::string> items;
  std::string item;
  bool is_blank = true;
  char quote = '\0';
  const auto add = [&] {
    if (std::string found = is_blank ? std::string() : parse_scalar(item); !found.empty())
      items.push_back(std::move(found));
    item.clear();
    is_blank = true;
  };
  std::string_view line = text.substr(1);
  while (true) {
    for (const char c : line) {
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if ((c == '"' || c == '\'') && is_blank) {
        quote = c;
      } else if (c == ',' || c == ']') {
        add();
        if (c == ']') return items;
        continue;
      }
      item += c;
      is_blank = is_blank && kBlank.find(c) != std::string_view::npos;
    }
    if (next == lines.size()) return {};
    item += ' ';
    line = lines[next++];
  }
}

// Returns the items of the lines "- a". Maps among them are left out.
std::vector<std::string> parse_block_items(const Lines& lines, std::size_t next) {
  std::vector<std::string> items;
  for (; next < lines.size(); ++next) {
    const std::string_view line = trim(lines[next]);
    if (line.empty() || line.starts_with('#')) continue;
    if (line != "-" && !line.starts_with("- ")) {
      if (!lines[next].starts_with(' ')) break;
      continue;  // a line of a map
    }
    const std::string_view text = trim(line.substr(1));
    const bool is_quoted = text.starts_with('"') || text.starts_with('\'');
    const bool is_map = !is_quoted && (text.ends_with(':') || text.find(": ") != std::string_view::npos);
    if (std::string item = is_map || text.empty() ? std::string() : parse_scalar(text); !item.empty())
      items.push_back(std::move(item));
  }
  return items;
}

// Returns the text after the colon on a line with this key; std::nullopt for other lines.
std::optional<std::string_view> find_value(std::string_view line, std::string_view key) {
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

std::string read_model_card(const Model& model) {
  const auto& files = model.origin.other_files;
  const auto card = std::ranges::find(files, kModelCard, &DirectoryFile::name);
  if (card == files.end()) return {};
  std::string text = read_text(*card->source, std::min(card->source->size(), kMostFrontMatter));
  if (text.size() < card->source->size()) text.resize(text.rfind('\n') + 1);  // whole lines, and whole characters
  return is_utf8(text) ? text : std::string();
}

std::vector<std::string> find_front_matter_values(std::string_view readme, std::string_view key) {
  const auto make_list = [](std::string text) {
    return text.empty() ? std::vector<std::string>() : std::vector<std::string>{std::move(text)};
  };
  const Lines lines = list_front_matter_lines(readme);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto value = find_value(lines[i], key);
    if (!value) continue;
    if (value->starts_with('[')) return parse_flow_items(*value, lines, i + 1);
    if (value->starts_with('|') || value->starts_with('>'))
      return make_list(join_block(lines, i + 1, value->front() == '|' ? '\n' : ' '));
    if (std::string text = parse_scalar(*value); !text.empty()) return make_list(std::move(text));
    return parse_block_items(lines, i + 1);
  }
  return {};
}

std::string find_front_matter_value(std::string_view readme, std::string_view key) {
  std::vector<std::string> values = find_front_matter_values(readme, key);
  return values.empty() ? std::string() : std::move(values.front());
}

}  // namespace poise
