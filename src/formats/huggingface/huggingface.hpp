// A Hugging Face model directory: config.json, safetensors (one file, or shards with an index), tokenizer.model,
// README.md.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kHuggingFace;

}  // namespace poise
