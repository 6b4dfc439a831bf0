// Regular expressions of tokenizer.json, run by PCRE2 with bounds on time and memory.
//
// Files are written for Oniguruma (Ruby's syntax). What means something else there is rewritten first: \s, \w, \b, \h,
// \uHHHH, the intersection && in classes, {n,m}+, and ^ and $, which mean the ends of lines.
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

// Oniguruma's expression in PCRE2's syntax.
std::string pcre2_syntax(std::string_view expression);

}  // namespace poise
