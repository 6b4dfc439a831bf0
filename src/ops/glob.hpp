// Shell patterns over tensor names.
#pragma once

#include <string_view>

namespace poise {

// Does the whole name match? * matches any run (dots included), ? one character, [a-z] and [!a-z] one of a set;
// [:digit:] and the like inside of a set are ASCII's. A ] that comes first in a set is one of it, a [ without ] is a
// letter like any other. Characters are those of UTF-8; a byte that is none counts as one. A name is never tried more
// often than it has characters.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace poise
