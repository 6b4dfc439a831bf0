// Writing GGUF version 3, as llama.cpp loads it.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace poise::gguf {

// Does llama.cpp have this matrix of the model transposed?
bool transposes(const Model& model, std::string_view tensor);

// Does llama.cpp compute with these numbers in float32? Norms, other vectors and biases of models that it knows; what
// is stored as codes or float64 stays that.
bool stores_as_f32(const Model& model, const Tensor& tensor);

std::unique_ptr<PreparedFile> prepare(const Model& model, const WriteOptions& options);

}  // namespace poise::gguf
