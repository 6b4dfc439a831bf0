// Classifies characters and changes their case as Python's str does.
#pragma once

#include <optional>
#include <string>

namespace poise::jinja {

// These functions answer as str.isspace() and similar methods do for a text of this character.
bool is_space(char32_t code);
bool is_alphabetic(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_lower(char32_t code);
bool is_upper(char32_t code);
bool is_title(char32_t code);
bool is_printable(char32_t code);
bool is_word(char32_t code);  // \w of a regular expression
// As str.isidentifier() does, these functions accept the first character of an identifier, and each later one.
bool begins_identifier(char32_t code);
bool continues_identifier(char32_t code);

// Returns true for a character that has a case, and for one between letters that Unicode ignores when it looks for the
// end of a word.
bool is_cased(char32_t code);
bool is_case_ignorable(char32_t code);

// Returns the value of a decimal digit of any script; std::nullopt for other characters.
std::optional<int> find_decimal_value(char32_t code);

enum class Case { lower, upper, title, swap, fold };
// Returns the UTF-8 of a character in another case, which may have several characters.
std::string map_case(char32_t code, Case to);

}  // namespace poise::jinja
