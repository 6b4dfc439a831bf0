// Patterns of modules' names, as PEFT matches them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bytes/regex.hpp"

namespace poise::huggingface {

class ModulePattern {
 public:
  enum class Matches : std::uint8_t { whole, ending };  // all of a name, or its end after a dot, too

  // A regular expression, of Python's syntax as far as PCRE2 shares it. Throws invalid_file with the expression;
  // `where` names the field that holds it.
  ModulePattern(std::string_view expression, Matches matches, const std::string& where);

  // Throws unsupported where that takes longer than any real expression does. Requires: a name of well-formed UTF-8.
  bool matches(std::string_view module) const;

 private:
  // Most patterns have letters and dots only, which stand for any character.
  struct Plain {
    std::string text;
    bool anchored;
  };
  std::variant<Plain, Regex> pattern_;
};

}  // namespace poise::huggingface
