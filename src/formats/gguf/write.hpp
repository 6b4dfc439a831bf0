// Writing GGUF version 3, as llama.cpp loads it.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise::gguf {

void write(const Model& model, Output& output, const WriteOptions& options);
FilePlan plan(const Model& model, const WriteOptions& options);
std::vector<std::string> losses(const Model& model, const WriteOptions& options);

}  // namespace poise::gguf
