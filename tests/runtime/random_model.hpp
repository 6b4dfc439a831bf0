// Small Mistral models with random weights.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/model.hpp>

namespace poise {

using NamedNumbers = std::map<std::string, std::vector<float>>;

inline Config small_config() {
  Config config;
  config.hidden_size = 24;
  config.intermediate_size = 36;
  config.max_position_embeddings = 300;
  config.num_attention_heads = 6;
  config.num_hidden_layers = 3;
  config.num_key_value_heads = 2;
  config.head_dim = 10;  // not hidden_size / num_attention_heads, and not a multiple of a vector
  config.vocab_size = 37;
  config.rope_theta = 1000.0F;
  return config;
}

// Returns a configuration for texts that take several computations.
inline Config long_config() {
  Config config = small_config();
  config.max_position_embeddings = 1200;
  return config;
}

inline std::vector<std::pair<std::string, Shape>> weight_shapes(const Config& c) {
  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const std::uint64_t hidden = size(c.hidden_size);
  const std::uint64_t queries = size(c.num_attention_heads * c.head_dim);
  const std::uint64_t keys = size(c.num_key_value_heads * c.head_dim);
  const std::uint64_t inner = size(c.intermediate_size);
  std::vector<std::pair<std::string, Shape>> shapes = {{"model.embed_tokens.weight", {size(c.vocab_size), hidden}},
                                                       {"model.norm.weight", {hidden}}};
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    shapes.insert(shapes.end(), {{layer + "input_layernorm.weight", {hidden}},
                                 {layer + "self_attn.q_proj.weight", {queries, hidden}},
                                 {layer + "self_attn.k_proj.weight", {keys, hidden}},
                                 {layer + "self_attn.v_proj.weight", {keys, hidden}},
                                 {layer + "self_attn.o_proj.weight", {hidden, queries}},
                                 {layer + "post_attention_layernorm.weight", {hidden}},
                                 {layer + "mlp.gate_proj.weight", {inner, hidden}},
                                 {layer + "mlp.up_proj.weight", {inner, hidden}},
                                 {layer + "mlp.down_proj.weight", {hidden, inner}}});
  }
  if (!c.tie_word_embeddings) shapes.push_back({"lm_head.weight", {size(c.vocab_size), hidden}});
  return shapes;
}

// Returns numbers from -1 to 1 times `scale`, the same on every machine.
inline std::vector<float> random_floats(std::size_t count, std::mt19937& random, float scale) {
  std::vector<float> values(count);
  for (float& value : values) value = scale * (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F);
  return values;
}

inline NamedNumbers random_weights(const Config& config, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  NamedNumbers weights;
  for (const auto& [name, shape] : weight_shapes(config))
    weights[name] = random_floats(*element_count(shape), random, shape.size() == 1 ? 1.5F : 0.5F);
  return weights;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Makes a model with these weights. `make` gives the tensors.
template <typename MakeTensor>
Model make_model(const Config& config, const NamedNumbers& weights, MakeTensor&& make) {
  Model model;
  model.card.model_type = "mistral";
  model.config = config;
  for (const auto& [name, shape] : weight_shapes(config)) model.add(make(name, shape, weights.at(name)));
  return model;
}

inline Tensor float_tensor(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return make_dense(name, shape, DType::f32, make_memory_blob(bytes_of(values), name));
}

inline Model make_model(const Config& config, const NamedNumbers& weights) {
  return make_model(config, weights, float_tensor);
}

}  // namespace poise
