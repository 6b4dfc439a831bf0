#include "patterns/glob.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "bytes/utf8.hpp"

namespace poise {
namespace {

// Returns the character at the front of a text, as UTF-8. Such texts compare in the order of their code points.
std::string_view find_first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(1, measure_character(text)));
}

std::string_view pop_character(std::string_view& text) {
  const std::string_view character = find_first_character(text);
  text.remove_prefix(character.size());
  return character;
}

bool is_in_class(std::string_view character, std::string_view name) {
  struct Class {
    std::string_view name;
    bool (*holds)(char);
  };
  static constexpr std::array<Class, 9> kClasses = {{{"alnum", is_ascii_alphanumeric},
                                                     {"alpha", is_ascii_letter},
                                                     {"blank", [](char c) { return c == ' ' || c == '\t'; }},
                                                     {"digit", is_ascii_digit},
                                                     {"lower", is_ascii_lower},
                                                     {"punct", is_ascii_punctuation},
                                                     {"space", is_ascii_space},
                                                     {"upper", is_ascii_upper},
                                                     {"xdigit", [](char c) { return parse_hex_digit(c) >= 0; }}}};
  const auto found = std::ranges::find(kClasses, name, &Class::name);
  return found != kClasses.end() && found->holds(character.front());
}

// Returns the name of the class that a set begins with: "digit" for "[:digit:]".
std::optional<std::string_view> find_class_name(std::string_view set) {
  if (!set.starts_with("[:")) return std::nullopt;
  const std::size_t end = set.find(":]", 2);
  if (end == std::string_view::npos) return std::nullopt;
  return set.substr(2, end - 2);
}

// Returns true if the set after a "[" contains the character, and removes the set from the pattern. Returns
// std::nullopt, and keeps the pattern, if the set has no end.
std::optional<bool> match_set(std::string_view& pattern, std::string_view character) {
  std::string_view rest = pattern;
  const bool inverted = rest.starts_with('!') || rest.starts_with('^');
  if (inverted) rest.remove_prefix(1);
  bool found = false;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    if (rest.starts_with(']') && !is_first) {
      pattern = rest.substr(1);
      return found != inverted;
    }
    if (const auto name = find_class_name(rest)) {
      found = found || is_in_class(character, *name);
      rest.remove_prefix(name->size() + 4);
      continue;
    }
    const std::string_view from = pop_character(rest);
    std::string_view to = from;
    if (rest.size() > 1 && rest[0] == '-' && rest[1] != ']') {
      rest.remove_prefix(1);
      to = pop_character(rest);
    }
    found = found || (from <= character && character <= to);
  }
  return std::nullopt;
}

// Returns true if the pattern's next item, which is not a star, matches the name's next character, and removes both.
bool match_token(std::string_view& pattern, std::string_view& name) {
  std::string_view rest = pattern;
  const std::string_view wanted = pop_character(rest);
  const std::string_view character = find_first_character(name);
  bool matches = wanted == "?" || wanted == character;
  if (wanted == "[") matches = match_set(rest, character).value_or(matches);
  if (!matches) return false;
  pattern = rest;
  name.remove_prefix(character.size());
  return true;
}

// Returns true if the pattern matches the name. Appends the text that each star matches, unless `stars` is null.
bool match(std::string_view pattern, std::string_view name, std::vector<std::string_view>* stars) {
  // After a mismatch, matching continues with this rest of the pattern and of the name: at the last star, which then
  // matches one more character. Earlier stars need no retry, since the text between two stars may match as early as
  // possible.
  std::optional<std::pair<std::string_view, std::string_view>> retry;
  while (!pattern.empty() || !name.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      retry.emplace(pattern, name);
      if (stars != nullptr) stars->push_back(name.substr(0, 0));
    } else if (pattern.empty() || name.empty() || !match_token(pattern, name)) {
      if (!retry || retry->second.empty()) return false;
      const std::size_t more = pop_character(retry->second).size();
      if (stars != nullptr) stars->back() = {stars->back().data(), stars->back().size() + more};
      std::tie(pattern, name) = *retry;
    }
  }
  return true;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view name) { return match(pattern, name, nullptr); }

std::optional<std::vector<std::string_view>> find_glob_stars(std::string_view pattern, std::string_view name) {
  std::vector<std::string_view> stars;
  if (!match(pattern, name, &stars)) return std::nullopt;
  return stars;
}

std::size_t count_glob_stars(std::string_view pattern) {
  std::size_t stars = 0;
  while (!pattern.empty()) {
    const std::string_view first = pop_character(pattern);
    if (first == "*") ++stars;
    if (first == "[") match_set(pattern, "a");
  }
  return stars;
}

}  // namespace poise
