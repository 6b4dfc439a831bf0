// Changing the metadata of a GGUF file.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace poise::gguf {

// A key that is there keeps its type, and the text has to be a value of it; a new one has the type that llama.cpp
// wants, or becomes text. Other entries keep their bytes. Where the new header ends in the old one's padding, the bytes
// that differ are replaced; else the file is written beside the old one, whose tensors the kernel copies, and replaces
// it. Throws bad_argument for a part of a split model that is not the first.
std::unique_ptr<PreparedEdit> edit(const Input& input, const AttributeChanges& changes);

}  // namespace poise::gguf
