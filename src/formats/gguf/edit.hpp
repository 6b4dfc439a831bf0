// Edits the metadata of a GGUF file.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace poise::gguf {

// An existing key keeps its type, and the text must be a value of it; a new one gets the type that llama.cpp requires,
// or text. Other entries keep their bytes. If the new header ends within the old one's padding, writes the bytes that
// differ; else writes a new file, to which the kernel copies the tensors, and replaces the old one. Throws bad_argument
// for a part of a split model other than the first.
std::unique_ptr<PreparedEdit> edit(const Input& input, const AttributeChanges& changes);

}  // namespace poise::gguf
