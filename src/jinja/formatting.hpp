// Formats values into texts: the operator %, str.format(), and HTML escapes.
#pragma once

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// Returns text % values. If the text is markup, both functions escape values that are not.
Object format_percent(Budget& budget, const Text& text, const Object& values);
// Returns text.format(...), as Python computes it.
Object format_braces(Interpreter& in, const Text& text, Parameters& parameters);

// Returns the text as markup, with entities for &, <, >, " and '. Returns markup unchanged.
Text escape_markup(Budget& budget, const Text& text);

// Holds a format specification for a number: [[fill]align][sign][#][0][width][,][.precision][type].
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
// Throws if the specification does not suit the value.
Text format_value(Budget& budget, const Object& value, const FormatSpec& spec);
FormatSpec parse_format_spec(std::string_view text);

inline constexpr std::size_t kMaxWidth = 1 << 20;
inline constexpr int kMaxPrecision = 1000;

}  // namespace poise::jinja
