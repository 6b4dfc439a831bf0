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

// Groups along rows of 4 or 8 bits become parts. The embedding and other codes become float32 numbers, as do those with
// a zero point of float16 that is not a code: these are read for that. Reading the parts throws unsupported,
// naming the tensor, for others that are not. `tied`, the output of a model that has no such matrix, is not quantized
// either; empty: there is none. Nothing: the model has no groups.
std::optional<UnfoldedModel> unfolded(const Model& model, std::string_view embedding, std::string_view tied);

}  // namespace poise
