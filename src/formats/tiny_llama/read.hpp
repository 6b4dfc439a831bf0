// Reads a Tiny Llama weight file.
#pragma once

#include "formats/format.hpp"

namespace poise::tiny_llama {

// Throws invalid_file naming the field or the layer and its array, what was expected and what was found.
Model read(const Input& input, const ReadOptions& options);

}  // namespace poise::tiny_llama
