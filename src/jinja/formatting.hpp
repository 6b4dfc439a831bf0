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

// Computes Python's format(value, spec). Throws if the specification does not suit the value. Requires: `spec` is not
// empty.
Text format_value(Budget& budget, const Object& value, std::string_view spec);

// Holds what a format specification asks for, or what stands between % and its letter.
struct FormatSpec {
  std::string fill = " ";  // one character
  char align = '\0';       // < > ^ =; 0: < for texts and > for numbers
  char sign = '\0';        // + - or a space; 0: only numbers below 0 have a sign
  bool drops_negative_zero = false;
  bool alternate = false;
  std::size_t width = 0;
  char grouping = '\0';  // , or _; 0: none
  std::optional<int> precision = {};
  char type = '\0';
};
inline constexpr std::size_t kMaxWidth = 1 << 20;
inline constexpr int kMaxPrecision = 1000;

// Each function returns a value as `spec` asks. A precision cuts a text, and is the least number of digits of an
// integer.
Text fill_text(Budget& budget, const Text& text, const FormatSpec& spec);
Text fill_integer(Budget& budget, std::int64_t number, const FormatSpec& spec);
Text fill_real(Budget& budget, double number, const FormatSpec& spec);
// Returns the character with a number, which counts as input. Throws if there is no such character.
Text make_character_of(std::int64_t number);

// Returns the text that Python's ascii() makes of a repr().
Text escape_non_ascii(Budget& budget, const Text& text);

}  // namespace poise::jinja
