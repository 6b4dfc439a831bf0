// Tensor roles: a tensor's place in a model in ALT's terms, by its name ("Per-Tensor Metadata" of the specification of
// version 2).
//
// Names are Hugging Face's for Mistral and Llama, in every family: "model.layers.3.self_attn.q_proj.weight".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise::alt {

// The numbers are those of the file.
enum class Component : std::int32_t { other = -1, layers = 0, embed_tokens = 1, lm_head = 2, norm = 3 };
enum class LayerPart : std::int32_t {
  other = -1,
  weight = 0,
  self_attn = 1,
  mlp = 2,
  input_layernorm = 3,
  post_attention_layernorm = 4
};
enum class Projection : std::int32_t {
  other = -1,
  none = 0,
  q_proj = 1,
  k_proj = 2,
  v_proj = 3,
  o_proj = 4,
  gate_proj = 5,
  up_proj = 6,
  down_proj = 7
};

struct TensorRole {
  Component component = Component::other;
  std::int32_t block = -1;  // layer number for Component::layers, else -1
  LayerPart layer = LayerPart::other;
  Projection projection = Projection::other;

  bool known() const;  // ALT has numbers for the name
  friend bool operator==(const TensorRole&, const TensorRole&) = default;
};

TensorRole role_from_name(std::string_view name);

// The tensors in canonical order; then those with other names, in file order.
std::vector<const Tensor*> in_canonical_order(const Model& model);

}  // namespace poise::alt
