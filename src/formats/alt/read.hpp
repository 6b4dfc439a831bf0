// Reading both versions of ALT.
#pragma once

#include "formats/format.hpp"

namespace poise::alt {

Model read_v2(const Input& input, const ReadOptions& options);

}  // namespace poise::alt
