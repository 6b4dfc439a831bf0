// Writing GGUF version 3, as llama.cpp loads it.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace poise::gguf {

std::unique_ptr<PreparedFile> prepare(const Model& model, const WriteOptions& options);

}  // namespace poise::gguf
