// What llama.cpp rejects in a GGUF file that Poise reads, and bytes that no reader looks at.
#pragma once

#include <vector>

#include "formats/format.hpp"

namespace poise::gguf {

// Warnings for every file of a split model: tensors that share an offset or are out of the header's order; names with
// control characters; bytes that belong to no tensor; padding that is not zero; tensors of unknown types. Throws what
// reading the headers throws. Requires: the files have been read.
std::vector<Finding> audit(const Input& input, const Model& model);

}  // namespace poise::gguf
