// The inverse: writes groups of codes as compressed-tensors' pack-quantized (compressed_tensors.cpp has the parts).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// A model whose groups of codes are parts of matrices.
struct UnfoldedModel {
  Model model;
  Attributes config;                // quantization_config; empty: no matrix has codes
  std::vector<std::string> losses;  // what became numbers, one sentence each
};

// Groups along rows of 4 or 8 bits become parts. The embedding and other codes become float32 numbers. Reading the
// parts throws unsupported, naming the tensor, for a zero point that is not a code. Nothing: the model has no groups.
std::optional<UnfoldedModel> unfolded(const Model& model, std::string_view embedding);

}  // namespace poise
