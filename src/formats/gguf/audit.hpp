// What llama.cpp refuses in a GGUF file that Poise reads, and what no reader looks at.
#pragma once

#include <vector>

#include "formats/format.hpp"

namespace poise::gguf {

// Warnings, for every file of a split model: tensors at the offset of another one or before those that the header has
// before them; names with control characters; bytes that belong to no tensor; padding that is not zero; tensors of
// types that are not known. Throws what reading the headers throws. Requires: the files have been read.
std::vector<Finding> audit(const Input& input, const Model& model);

}  // namespace poise::gguf
