// Writes GGUF version 3, as llama.cpp loads it.
#pragma once

#include <functional>
#include <memory>

#include "formats/format.hpp"

namespace poise::gguf {

// True if llama.cpp stores this matrix of the model transposed.
bool transposes(const Model& model, std::string_view tensor);

// For a model, true for the numbers that llama.cpp computes with in float32: norms, other vectors and biases of models
// that it knows. Codes and float64 stay.
std::function<bool(const Tensor& tensor)> stored_as_f32(const Model& model);

std::unique_ptr<PreparedFile> prepare(const Model& model, const WriteOptions& options);

}  // namespace poise::gguf
