// Regular expressions of tokenizer.json, run by PCRE2 with bounds on time and memory.
// They are written for Oniguruma, and translated first (oniguruma.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace poise {

class Regex {
 public:
  // Throws invalid_file with the expression and PCRE2's reason; `where` names the field that holds it.
  Regex(std::string_view expression, std::string where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

 private:
  friend class RegexMatcher;
  struct Code;
  std::unique_ptr<const Code> code_;
};

// Finds the matches in texts, one text after the other. Requires: the Regex outlives it.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  ~RegexMatcher();
  RegexMatcher(RegexMatcher&&) noexcept;

  // Begins the time that texts of so many bytes together may take. Requires: called before the first search.
  void allow(std::size_t bytes);
  // Requires: well-formed UTF-8 that stays until the last match is found.
  void begin(std::string_view text);
  // The next match; false after the last. No match is empty right after another. Throws unsupported when searches take
  // longer than any real expression does.
  bool next(std::size_t& begin, std::size_t& end);

 private:
  struct State;
  bool search(std::size_t& begin, std::size_t& end);

  std::unique_ptr<State> state_;
};

}  // namespace poise
