// Parses numbers and sizes as people write them in options and arguments. The whole text must match.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace poise {

// Returns the number that the whole text spells; std::nullopt when it spells no number, is not finite or does not fit
// the type. Number: int, unsigned, std::int64_t, std::uint64_t, float or double.
template <typename Number>
std::optional<Number> parse_number_text(std::string_view text);

// Returns the double nearest to the number that the whole text spells: infinite if it is too large, 0 if it is too
// small. Also reads "inf", "infinity" and "nan"; returns std::nullopt for other texts. Ignores the program's locale.
std::optional<double> parse_double(std::string_view text);

// Parses "512", "64KiB", "4.2GB", "1 MB": units of 1000 or, with an i, 1024; upper or lower case. Accepts up to nine
// decimals before a unit, and drops a part of a byte. Returns std::nullopt for other texts and for 2^64 or more.
std::optional<std::uint64_t> parse_size(std::string_view text);

// Follows "expected" in error messages about sizes.
constexpr std::string_view kSizeExpected = "a size of 1 byte or more: 4096, 64KiB, 2GB";

}  // namespace poise
