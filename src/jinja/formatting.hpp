// Texts with values in them: the operator %, str.format(), and escapes of HTML.
#pragma once

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// text % values
Object percent_formatted(Budget& budget, const Text& text, const Object& values);
// text.format(...)
Object brace_formatted(Interpreter& in, const Text& text, Parameters& parameters);

// Markup: &, <, >, " and ' as entities; as it is where it is markup already.
Text escaped(const Text& text);

// How a number is shown: [[fill]align][sign][#][0][width][,][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =; 0: the type's own
  char sign = '-';
  bool alternate = false;
  std::size_t width = 0;
  char grouping = '\0';
  std::optional<int> precision = {};
  char type = '\0';
};
// Throws for a number that is not shown that way.
Text formatted(Budget& budget, const Object& value, const FormatSpec& spec);
FormatSpec format_spec(std::string_view text);

inline constexpr std::size_t kMaxWidth = 1 << 20;
inline constexpr int kMaxPrecision = 1000;

}  // namespace poise::jinja
