// Matches tensor names with shell patterns.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace poise {

// Returns true if the whole name matches. * matches any run (dots included), ? one character, [a-z] one of a set,
// [!a-z] and [^a-z] one that is not in it; classes such as [:digit:] in a set match only ASCII characters. A ] that
// comes first in a set belongs to it; a [ without ] stands for itself. Characters are UTF-8; an invalid byte counts as
// one character. The time grows at most with the product of both lengths.
bool matches_glob(std::string_view pattern, std::string_view name);

// Returns the texts that the pattern's stars match, in order; std::nullopt when the name does not match. A star matches
// as little as the rest of the pattern allows, the first star first. The texts are views of `name`.
std::optional<std::vector<std::string_view>> find_glob_stars(std::string_view pattern, std::string_view name);

// Returns how many stars the pattern has. A star in a set stands for itself.
std::size_t count_glob_stars(std::string_view pattern);

}  // namespace poise
