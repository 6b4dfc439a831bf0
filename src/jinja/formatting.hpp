// Formats values into texts: the operator %, str.format(), and HTML escapes.
#pragma once

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// Each function computes text % values, or text.format(...), as Python does. If the text is markup, it escapes values
// that are not markup.
Object format_percent(Budget& budget, const Text& text, const Object& values);
Object format_braces(Interpreter& in, const Text& text, Parameters& parameters);

// Returns the text as markup, with entities for &, <, >, " and '. Returns markup unchanged.
Text escape_markup(Budget& budget, const Text& text);

// Holds Python's format specification of a value: [[fill]align][sign][#][0][width][grouping][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =; 0: the type's default
  char sign = '-';
  bool alternate = false;
  std::size_t width = 0;
  char grouping = '\0';  // , or _; 0: none
  std::optional<int> precision = {};
  char type = '\0';
};
// Throws if the specification does not suit the value.
Text format_value(Budget& budget, const Object& value, const FormatSpec& spec);
FormatSpec parse_format_spec(std::string_view text);

inline constexpr std::size_t kMaxWidth = 1 << 20;
inline constexpr int kMaxPrecision = 1000;

}  // namespace poise::jinja
