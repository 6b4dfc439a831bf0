// Formats values into texts: the operator %, str.format(), and HTML escapes.
#pragma once

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// Values in markup are escaped, unless they are markup, too.
// text % values
Object percent_formatted(Budget& budget, const Text& text, const Object& values);
// text.format(...)
Object brace_formatted(Interpreter& in, const Text& text, Parameters& parameters);

// Markup: &, <, >, " and ' as entities; unchanged if it is markup already.
Text escaped(const Text& text);
// The same, counted first.
Text escaped(Budget& budget, const Text& text);

// A format specification for a number: [[fill]align][sign][#][0][width][,][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =; 0: the type's default
  char sign = '-';
  bool alternate = false;
  std::size_t width = 0;
  char grouping = '\0';
  std::optional<int> precision = {};
  char type = '\0';
};
// Throws for a number that the specification does not fit.
Text formatted(Budget& budget, const Object& value, const FormatSpec& spec);
FormatSpec format_spec(std::string_view text);

inline constexpr std::size_t kMaxWidth = 1 << 20;
inline constexpr int kMaxPrecision = 1000;

}  // namespace poise::jinja
