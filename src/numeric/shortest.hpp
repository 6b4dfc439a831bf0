// float32 numbers as people write them.
#pragma once

#include <fmt/format.h>

#include "bytes/number_text.hpp"

namespace poise {

// The double whose shortest spelling is the float's: 1e-05, not 9.999999747378752e-06.
inline double shortest(float value) { return parse_double(fmt::format("{}", value)).value(); }

}  // namespace poise
