// ALT ("Altiera") model files: version 2, and its predecessor version 1. docs/formats/alt.md describes both.
#pragma once

#include "formats/format.hpp"

namespace poise {

// They share the extension .alt; writing a file of that name means version 2.
extern const Format kAltV2;
extern const Format kAltV1;

}  // namespace poise
