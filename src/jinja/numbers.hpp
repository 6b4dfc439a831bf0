// Converts texts and float64 numbers to numbers as Python's int() and float() do.
#pragma once

#include <cstdint>
#include <optional>

#include "jinja/text.hpp"

namespace poise::jinja {

// Converts a text like int(text, base). Returns std::nullopt for other texts, and for an unknown base. Throws for an
// integer that does not fit.
std::optional<std::int64_t> parse_integer(const Text& given, std::int64_t base);

// Converts a text like float(text). Returns std::nullopt for other texts.
std::optional<double> parse_real(const Text& given);

// Converts a number to an integer, toward 0. Returns std::nullopt for NaN, which has none. Throws for an infinite
// number, like Python, and for an integer that does not fit.
std::optional<std::int64_t> truncate_real(double number);

}  // namespace poise::jinja
