#include "patterns/glob.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

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

// Returns the name of the class that a set begins with: "digit" for "[:digit:]". Requires: it begins with a class.
std::string_view find_class_name(std::string_view set) { return set.substr(2, set.find(":]", 2) - 2); }

bool skip_inversion(std::string_view& set) {
  const bool inverted = set.starts_with('!') || set.starts_with('^');
  if (inverted) set.remove_prefix(1);
  return inverted;
}

// Removes a character, or a range of characters such as "a-z", from a set. Returns its ends.
std::pair<std::string_view, std::string_view> pop_range(std::string_view& set) {
  const std::string_view from = pop_character(set);
  if (set.size() <= 1 || set[0] != '-' || set[1] == ']') return {from, from};
  set.remove_prefix(1);
  return {from, pop_character(set)};
}

// Finds which sets of a pattern have an end. A "[" without one is a plain character. All are found in one pass, so that
// a pattern with many of them takes no longer than others.
class SetEnds {
 public:
  explicit SetEnds(std::string_view pattern) : pattern_(pattern) {}

  // Returns true if the set whose first byte after "[" is that of `rest` has an end. Requires: `rest` ends as the
  // pattern.
  bool has_end(std::string_view rest) {
    if (closes_.empty()) find_all();
    skip_inversion(rest);
    return rest.starts_with(']') ? closes_after_range(rest) : get_closes(rest);  // "]" at the beginning is a character
  }

  // Returns true if the rest of a set begins with a class such as [:digit:]. Without this check, each "[:" would search
  // all that follows. Requires: `rest` ends as the pattern; has_end() was called.
  bool has_class(std::string_view rest) const {
    return rest.starts_with("[:") && find_place(rest) + 2 <= last_class_end_;
  }

 private:
  void find_all() {
    closes_.assign(pattern_.size() + 1, false);
    const std::size_t last = pattern_.rfind(":]");
    last_class_end_ = last == std::string_view::npos ? 0 : last;
    std::size_t class_end = 0;  // the next ":]" at least two bytes further
    for (std::size_t at = pattern_.size(); at-- > 0;) {
      const std::string_view rest = pattern_.substr(at);
      if (rest.substr(std::min<std::size_t>(2, rest.size()), 2) == ":]") class_end = at + 2;
      closes_[at] = has_class(rest) ? closes_[class_end + 2] : rest.starts_with(']') || closes_after_range(rest);
    }
  }
  std::size_t find_place(std::string_view rest) const { return pattern_.size() - rest.size(); }
  bool get_closes(std::string_view rest) const { return closes_[find_place(rest)]; }
  bool closes_after_range(std::string_view rest) const {
    if (rest.empty()) return false;
    pop_range(rest);
    return get_closes(rest);
  }

  std::string_view pattern_;
  std::size_t last_class_end_ = 0;  // the place of the last ":]"; 0: there is none
  std::vector<bool> closes_;        // for each byte inside a set: whether the set has an end; empty until it is needed
};

// Returns true if the set after a "[" contains the character, and removes the set from the pattern. Requires: the set
// has an end, and `ends` belongs to the whole pattern.
bool match_set(std::string_view& pattern, std::string_view character, const SetEnds& ends) {
  const bool inverted = skip_inversion(pattern);
  bool found = false;
  for (bool is_first = true; is_first || !pattern.starts_with(']'); is_first = false) {
    if (ends.has_class(pattern)) {
      const std::string_view name = find_class_name(pattern);
      found = found || is_in_class(character, name);
      pattern.remove_prefix(name.size() + 4);
      continue;
    }
    const auto [from, to] = pop_range(pattern);
    found = found || (from <= character && character <= to);
  }
  pattern.remove_prefix(1);
  return found != inverted;
}

// Returns true if the pattern's next item, which is not a star, matches the name's next character, and removes both.
// `ends` belongs to the whole pattern.
bool match_token(std::string_view& pattern, std::string_view& name, SetEnds& ends) {
  std::string_view rest = pattern;
  const std::string_view wanted = pop_character(rest);
  const std::string_view character = find_first_character(name);
  bool matches = wanted == "?" || wanted == character;
  if (wanted == "[" && ends.has_end(rest)) matches = match_set(rest, character, ends);
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
  SetEnds ends(pattern);
  while (!pattern.empty() || !name.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      retry.emplace(pattern, name);
      if (stars != nullptr) stars->push_back(name.substr(0, 0));
    } else if (name.empty()) {
      return false;  // every other item matches one character, so a later start would reach the end even sooner
    } else if (pattern.empty() || !match_token(pattern, name, ends)) {
      if (!retry) return false;
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
  SetEnds ends(pattern);
  while (!pattern.empty()) {
    const std::string_view first = pop_character(pattern);
    if (first == "*") ++stars;
    if (first == "[" && ends.has_end(pattern)) match_set(pattern, "a", ends);
  }
  return stars;
}

}  // namespace poise
