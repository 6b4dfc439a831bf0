// The weights of a Tiny Llama model: their names, their shapes and their order (docs/formats/tiny-llama.md).
//
//   embedding.weight [V, D]   position_embedding.weight [S, D]
//   a layer: attention.{query,key,value,output}.weight [D, D]
//            ffn.linear1.weight [D, F], .bias [F]   ffn.linear2.weight [F, D], .bias [D]   norm1, norm2: .weight, .bias [D]
//   output_projection.weight [D, V]
//
// Matrices are [in, out]: y = x W.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "model/roles.hpp"

namespace poise {

inline constexpr std::string_view kTinyLlama = "tiny_llama";  // Card::model_type
inline constexpr std::string_view kTinyLlamaEmbedding = "embedding.weight";
inline constexpr std::string_view kTinyLlamaLayers = "layers.";  // begins the names of the layers' tensors
inline constexpr float kTinyLlamaNormEps = 1e-5F;
inline constexpr std::int32_t kTinyLlamaEos = 3;  // the id of <eos>

// The pieces of which tiny_llama_tensors() is made. Requires: the configuration has been checked.
std::vector<ExpectedTensor> tiny_llama_embeddings(const Config& config);
std::vector<ExpectedTensor> tiny_llama_layer(const Config& config, std::int64_t layer);
ExpectedTensor tiny_llama_output(const Config& config);

// In the order of the file.
std::vector<ExpectedTensor> tiny_llama_tensors(const Config& config);

// The hyperparameters of a model with these seven numbers; everything else as a Tiny Llama has it.
struct TinyLlamaSizes {
  std::int64_t model_dim = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t ffn_hidden_dim = 0;
  std::int64_t positions = 0;
  std::int64_t vocabulary = 0;
  float dropout = 0;
};
Config tiny_llama_config(const TinyLlamaSizes& sizes);

// What the family fixes and check_config() does not know, one sentence each: the activation, one key and value head per
// query head, heads that divide the dimension, a dropout between 0 and 1. Requires: check_config() found nothing.
std::vector<std::string> check_tiny_llama_config(const Config& config);

}  // namespace poise
