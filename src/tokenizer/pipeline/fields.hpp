// Finds types by name, counts steps, and reads patterns, for all parts of a pipeline.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "patterns/regex.hpp"
#include "syntax/fields.hpp"

namespace poise {

// Throws unsupported, naming the type.
[[noreturn]] void throw_unknown_type(const Fields& fields, std::string_view type);

// Returns the row for the part's "type". Throws unsupported for unknown types.
template <typename Rows>
const auto& find_row(const Rows& rows, const Fields& fields) {
  const std::string type = fields.require_text("type");
  for (const auto& row : rows) {
    if (row.type == type) return row;
  }
  throw_unknown_type(fields, type);
}

// Counts one more step of a part. Throws unsupported if there are too many, which also bounds how deep sequences nest.
void count_step(const Fields& fields, std::size_t& steps);

// Holds a text or a regular expression, {"String": "..."} or {"Regex": "..."}.
class Pattern {
 public:
  // Reads the field `key`: a text, or an object as above. Throws invalid_file if it is neither.
  static Pattern read(const Fields& fields, std::string_view key);
  static Pattern compile(std::string_view expression, const std::string& where) {
    return Pattern(Regex(expression, where));
  }

 private:
  friend class PatternMatcher;
  // Requires: the text is not empty.
  explicit Pattern(std::string text) : text_(std::move(text)) {}
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}

  std::string text_;
  std::optional<Regex> regex_;
};

// Cuts texts at the matches of a pattern. Requires: the pattern outlives this.
class PatternMatcher {
 public:
  explicit PatternMatcher(const Pattern& pattern) : pattern_(pattern) {
    if (pattern.regex_) matcher_.emplace(*pattern.regex_);
  }

  void start_time_limit(std::size_t bytes) {
    if (matcher_) matcher_->start_time_limit(bytes);
  }

  // Calls visit(run, is_match) for all runs of the text, from front to back: matches, and the text between them.
  template <typename Visit>
  void for_each_run(std::string_view text, Visit&& visit) {
    if (text.empty()) return;
    std::size_t done = 0;
    const auto visit_match = [&](std::size_t begin, std::size_t end) {
      if (done < begin) visit(text.substr(done, begin - done), false);
      visit(text.substr(begin, end - begin), true);
      done = end;
    };
    if (matcher_) {
      matcher_->begin_text(text);
      std::size_t begin = 0;
      std::size_t end = 0;
      while (matcher_->find_next(begin, end)) visit_match(begin, end);
    } else {
      for (std::size_t at = text.find(pattern_.text_); at != std::string_view::npos;
           at = text.find(pattern_.text_, done)) {
        visit_match(at, at + pattern_.text_.size());
      }
    }
    if (done < text.size()) visit(text.substr(done), false);
  }

 private:
  const Pattern& pattern_;
  std::optional<RegexMatcher> matcher_;
};

}  // namespace poise
