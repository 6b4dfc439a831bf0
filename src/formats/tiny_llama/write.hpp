// Writes a Tiny Llama weight file.
#pragma once

#include "formats/format.hpp"

namespace poise::tiny_llama {

// Throws unsupported with every reason why the model is not such a file.
void write(const Model& model, Output& output, const WriteOptions& options);

// Throws what write() throws.
FilePlan plan(const Model& model, const WriteOptions& options);

std::vector<std::string> losses(const Model& model, const WriteOptions& options);

}  // namespace poise::tiny_llama
