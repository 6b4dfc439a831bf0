// Shell patterns over tensor names.
#pragma once

#include <string_view>

namespace poise {

// Returns true when the whole name matches. * matches any run (dots included), ? one character, [a-z] and [!a-z] one of
// a set; [:digit:] and the like inside a set are ASCII's. A ] that comes first in a set belongs to it; a [ without ]
// stands for itself. Characters are UTF-8; an invalid byte counts as one character. Takes at most one attempt for each
// character of the name.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace poise
