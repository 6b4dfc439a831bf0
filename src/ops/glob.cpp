#include "ops/glob.hpp"

#include <fnmatch.h>

namespace poise {

bool glob_matches(const std::string& pattern, const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0; }

}  // namespace poise
