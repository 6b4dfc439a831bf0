#include "formats/huggingface/module_patterns.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace poise::huggingface {
namespace {

bool is_plain(std::string_view text) {
  return text.find_first_of("*+?[](){}|\\^$") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_like(std::string_view text, std::string_view plain) {
  return std::ranges::equal(text, plain, [](char c, char wanted) { return wanted == '.' || c == wanted; });
}

}  // namespace

ModulePattern::ModulePattern(std::string_view expression, Matches matches, const std::string& where)
    : pattern_(Plain{std::string(expression), matches == Matches::whole}) {
  if (is_plain(expression)) return;
  const std::string_view before = matches == Matches::ending ? R"((?:.*\.)?)" : "";
  pattern_ = Regex(fmt::format(R"(\A{}(?:{})\z)", before, expression), where);
}

bool ModulePattern::matches(std::string_view module) const {
  if (const auto* plain = std::get_if<Plain>(&pattern_)) {
    if (module.size() < plain->text.size()) return false;
    const std::size_t begin = module.size() - plain->text.size();
    if (begin != 0 && (plain->anchored || module[begin - 1] != '.')) return false;
    return is_like(module.substr(begin), plain->text);
  }
  RegexMatcher matcher(std::get<Regex>(pattern_));
  matcher.allow(module.size());
  matcher.begin(module);
  std::size_t from = 0;
  std::size_t to = 0;
  return matcher.next(from, to);
}

}  // namespace poise::huggingface
