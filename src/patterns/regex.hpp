// Runs regular expressions from files with PCRE2, within limits on time and memory. Translates them from Oniguruma's
// syntax (oniguruma.cpp), which tokenizer.json uses. Expressions for names of modules, in quantization_config, have
// Python's syntax; they need only constructs that mean the same in both syntaxes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace poise {

class Regex {
 public:
  // Throws invalid_file, with the expression and the reason, if it is not valid, or longer than 64 KiB. `where` names
  // the file and the field that hold it.
  Regex(std::string_view expression, std::string where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Returns how many groups the expression captures.
  std::size_t count_groups() const;

 private:
  friend class RegexMatcher;
  struct Code;
  std::unique_ptr<const Code> code_;
};

// Finds the matches of an expression in texts, one text at a time. Requires: the Regex outlives it.
class RegexMatcher {
 public:
  // `groups` is the number of the expression's groups that find_group() can return.
  explicit RegexMatcher(const Regex& regex, std::size_t groups = 0);
  ~RegexMatcher();
  RegexMatcher(RegexMatcher&&) noexcept;

  // Starts the time limit for all texts until the next call; `bytes` is their size. Callers call it before the first
  // search.
  void start_time_limit(std::size_t bytes);
  // Begins to search a text. Requires: well-formed UTF-8 that outlives the search.
  void begin_text(std::string_view text);
  // Finds the next match, [begin, end); returns false if there is none. An empty match never follows directly after
  // another match. Throws unsupported if searches exceed the limits on time, steps or memory.
  bool find_next(std::size_t& begin, std::size_t& end);
  // Returns the text of a group of the last match; empty if the group took no part. Groups have numbers from 1.
  // Requires: the last call of find_next() returned true; number <= groups.
  std::string_view find_group(std::size_t number) const;

 private:
  struct State;
  bool search(std::size_t& begin, std::size_t& end);

  std::unique_ptr<State> state_;
};

// Translates regular expressions from Oniguruma's syntax (Ruby's), which tokenizer.json uses, to PCRE2's.
//
// It rewrites constructs that mean something else in PCRE2: names of sets, \s, \w, \b, \h, \O, \Z, \uHHHH, classes in
// classes, their intersection &&, {,m}, {n,m}+ and {n}?. Requires: the caller compiles the result with PCRE2_MULTILINE,
// because Oniguruma's ^ and $ match at the beginnings and ends of lines.
//
// Throws invalid_file (without path) for classes that do not end or are nested too deeply. PCRE2 reports other errors.
std::string translate_to_pcre2(std::string_view expression);

}  // namespace poise
