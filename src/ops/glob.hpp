// Shell patterns over tensor names.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// Does the whole name match? * matches any run (dots included), ? one character, [a-z] and [!a-z] one of a set.
bool glob_matches(const std::string& pattern, const std::string& name);

}  // namespace poise
