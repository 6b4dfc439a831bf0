// Tensor roles: what a tensor's name says about its place in a Mistral or Llama model.
//
// Names are Hugging Face's: "model.layers.3.self_attn.q_proj.weight". The name decides; formats that also store the place
// as numbers (ALT) store hints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// The numbers are ALT v2's ("Per-Tensor Metadata" of its specification).
enum class Component : std::int32_t { other = -1, layers = 0, embed_tokens = 1, lm_head = 2, norm = 3 };
enum class LayerPart : std::int32_t { other = -1, weight = 0, self_attn = 1, mlp = 2, input_layernorm = 3, post_attention_layernorm = 4 };
enum class Projection : std::int32_t { other = -1, none = 0, q_proj = 1, k_proj = 2, v_proj = 3, o_proj = 4, gate_proj = 5, up_proj = 6, down_proj = 7 };

struct TensorRole {
  Component component = Component::other;
  std::int32_t block = -1;  // layer number for Component::layers, else -1
  LayerPart layer = LayerPart::other;
  Projection projection = Projection::other;

  bool known() const;  // one of the tensors of a Mistral or Llama model
  friend bool operator==(const TensorRole&, const TensorRole&) = default;
};

TensorRole role_from_name(std::string_view name);

// "17.self_attn.q_proj.weight": a layer's number and what follows its dot. Nothing when there is no number, or one with
// superfluous zeros.
struct NumberedName {
  std::int32_t number;
  std::string_view rest;
};
std::optional<NumberedName> split_number(std::string_view name);

// A weight that a model of this configuration must have.
struct ExpectedTensor {
  std::string name;
  Shape shape;
};

// In canonical order: embed_tokens; per layer input_layernorm, q, k, v, o, post_attention_layernorm, gate, up, down; norm;
// lm_head unless tied. Requires: the configuration has been checked.
std::vector<ExpectedTensor> expected_tensors(const Config& config);

// The tensors in canonical order; those with other names behind them in file order.
std::vector<const Tensor*> in_canonical_order(const Model& model);

}  // namespace poise
