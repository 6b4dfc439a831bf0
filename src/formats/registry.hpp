// Declares most formats. Each format is a row of the table in registry.cpp, and has a page in docs/formats/.
#pragma once

#include "formats/format.hpp"

namespace poise {

// Versions 2 and 1 share the extension .alt; files with that name are written in version 2.
extern const Format kAltV2;
extern const Format kAltV1;
extern const Format kDistributedCheckpoint;
extern const Format kFlax;
extern const Format kGguf;
extern const Format kHuggingFace;
extern const Format kLlama2c;
extern const Format kNpy;
extern const Format kNpz;
extern const Format kOnnx;
extern const Format kPytorch;  // Poise never runs the code of a file
extern const Format kTinyLlamaFormat;

}  // namespace poise
