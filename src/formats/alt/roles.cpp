#include "formats/alt/roles.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "family/tensor_table.hpp"

namespace poise::alt {
namespace {

// One row per tensor of a layer, in canonical order.
struct LayerTensor {
  std::string_view name;  // after "model.layers.N."
  LayerPart layer;
  Projection projection;
};

constexpr std::array<LayerTensor, 9> kLayerTensors = {{
    {"input_layernorm.weight", LayerPart::input_layernorm, Projection::none},
    {"self_attn.q_proj.weight", LayerPart::self_attn, Projection::q_proj},
    {"self_attn.k_proj.weight", LayerPart::self_attn, Projection::k_proj},
    {"self_attn.v_proj.weight", LayerPart::self_attn, Projection::v_proj},
    {"self_attn.o_proj.weight", LayerPart::self_attn, Projection::o_proj},
    {"post_attention_layernorm.weight", LayerPart::post_attention_layernorm, Projection::none},
    {"mlp.gate_proj.weight", LayerPart::mlp, Projection::gate_proj},
    {"mlp.up_proj.weight", LayerPart::mlp, Projection::up_proj},
    {"mlp.down_proj.weight", LayerPart::mlp, Projection::down_proj},
}};

constexpr std::string_view kLayerPrefix = "model.layers.";

TensorRole layer_role(std::string_view numbered) {
  TensorRole role;
  const auto split = split_number(numbered);
  if (!split) return role;
  role.component = Component::layers;
  role.block = split->number;
  for (const LayerTensor& row : kLayerTensors) {
    if (row.name == split->rest) {
      role.layer = row.layer;
      role.projection = row.projection;
    }
  }
  return role;
}

int order_in_layer(const TensorRole& role) {
  const auto row = std::find_if(kLayerTensors.begin(), kLayerTensors.end(), [&](const LayerTensor& tensor) {
    return tensor.layer == role.layer && tensor.projection == role.projection;
  });
  return static_cast<int>(row - kLayerTensors.begin());
}

// The canonical order of tensors: (component's place, block, place in the layer).
using CanonicalKey = std::tuple<int, std::int32_t, int>;

CanonicalKey canonical_key(std::string_view name) {
  const TensorRole role = role_from_name(name);
  if (!role.known()) return {4, 0, 0};
  switch (role.component) {
    case Component::embed_tokens: return {0, 0, 0};
    case Component::layers: return {1, role.block, order_in_layer(role)};
    case Component::norm: return {2, 0, 0};
    case Component::lm_head: return {3, 0, 0};
    case Component::other: break;
  }
  return {4, 0, 0};
}

}  // namespace

bool TensorRole::known() const { return component != Component::other && layer != LayerPart::other; }

TensorRole role_from_name(std::string_view name) {
  if (name == "model.embed_tokens.weight") return {Component::embed_tokens, -1, LayerPart::weight, Projection::none};
  if (name == "lm_head.weight") return {Component::lm_head, -1, LayerPart::weight, Projection::none};
  if (name == "model.norm.weight") return {Component::norm, -1, LayerPart::weight, Projection::none};
  if (name.starts_with(kLayerPrefix)) return layer_role(name.substr(kLayerPrefix.size()));
  return {};
}

std::vector<const Tensor*> in_canonical_order(const Model& model) {
  std::vector<std::pair<CanonicalKey, const Tensor*>> keyed;
  for (const Tensor& tensor : model.tensors()) keyed.emplace_back(canonical_key(tensor.name), &tensor);
  std::ranges::stable_sort(keyed, {}, [](const auto& item) { return item.first; });
  std::vector<const Tensor*> tensors;
  tensors.reserve(keyed.size());
  for (const auto& [key, tensor] : keyed) tensors.push_back(tensor);
  return tensors;
}

}  // namespace poise::alt
