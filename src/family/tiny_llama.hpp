// Tiny Llama (docs/formats/tiny-llama.md). Its weights:
//
//   embedding.weight [V, D]   position_embedding.weight [S, D]
//   a layer: attention.{query,key,value,output}.weight [D, D]   ffn.linear1.weight [D, F], .bias [F]
//            ffn.linear2.weight [F, D], .bias [D]   norm1, norm2: .weight, .bias [D]
//   output_projection.weight [D, V]
//
// Matrices are [in, out]: y = x W.
#pragma once

#include <cstdint>
#include <string_view>

#include "family/family.hpp"

namespace poise {

extern const Family kTinyLlamaFamily;

inline constexpr std::string_view kTinyLlama = "tiny_llama";  // Card::model_type
inline constexpr float kTinyLlamaNormEps = 1e-5F;

// The hyperparameters of a Tiny Llama with these seven sizes.
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

}  // namespace poise
