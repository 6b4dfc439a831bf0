#include "formats/front_matter.hpp"

#include <algorithm>
#include <utility>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "io/source_range.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kMostFrontMatter = kMostYamlBytes;

// Returns the text between the first line, which must be "---", and the next such line; empty if there is none. An
// empty line replaces the first, so that lines keep their numbers.
std::string extract_front_matter(std::string_view readme) {
  if (readme.starts_with("\xef\xbb\xbf")) readme.remove_prefix(3);  // a byte order mark
  const auto is_fence = [](std::string_view line) {
    const std::size_t end = line.find_last_not_of(" \t\r");
    return end != std::string_view::npos && line.substr(0, end + 1) == "---";
  };
  const std::size_t first = readme.find('\n');
  if (first == std::string_view::npos || !is_fence(readme.substr(0, first))) return {};
  for (std::size_t begin = first + 1; begin < readme.size();) {
    const std::size_t end = std::min(readme.find('\n', begin), readme.size());
    if (is_fence(readme.substr(begin, end - begin))) return std::string(readme.substr(first, begin - first));
    begin = end + 1;
  }
  return {};
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

FrontMatter::FrontMatter(std::string_view readme) {
  try {
    root_ = parse_yaml(extract_front_matter(readme), std::string());
  } catch (const Error& error) {
    problem_ = error.message();
  }
}

std::vector<std::string> FrontMatter::find_values(std::string_view key) const {
  const YamlNode* const value = root_.kind == YamlNode::Kind::map ? root_.find(key) : nullptr;
  std::vector<std::string> values;
  const auto add = [&](const YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar) return;
    std::string text = node.text.substr(0, node.text.find_last_not_of('\n') + 1);
    if (!text.empty()) values.push_back(std::move(text));
  };
  if (value != nullptr && value->kind == YamlNode::Kind::list) std::ranges::for_each(value->items, add);
  if (value != nullptr) add(*value);
  return values;
}

std::string FrontMatter::find_value(std::string_view key) const {
  std::vector<std::string> values = find_values(key);
  return values.empty() ? std::string() : std::move(values.front());
}

}  // namespace poise
