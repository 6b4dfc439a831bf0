// ALT ("Altiera") model files: version 2, and its predecessor version 1. docs/formats/alt.md describes both.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kAltV2;

}  // namespace poise
