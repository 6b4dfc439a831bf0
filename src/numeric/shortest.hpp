// float32 numbers as people write them.
#pragma once

#include <cstdlib>

#include <fmt/format.h>

namespace poise {

// The double whose shortest spelling is the float's: 1e-05, not 9.999999747378752e-06.
inline double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

}  // namespace poise
