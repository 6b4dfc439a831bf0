// Changing the metadata of a GGUF file.
#pragma once

#include "formats/format.hpp"

namespace poise::gguf {

// The file is written anew beside the old one, whose tensors the kernel copies, and replaces it at once. A key that is
// there keeps its type, and the text has to be a value of it; a new one becomes text. Other entries keep their bytes.
EditReport edit(const Input& input, const AttributeChanges& changes);

}  // namespace poise::gguf
