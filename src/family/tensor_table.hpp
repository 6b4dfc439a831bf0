// TensorTable: the weights of an architecture: names, shapes, canonical order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "family/config_view.hpp"

namespace poise {

// A weight that a model of some configuration must have.
struct ExpectedTensor {
  std::string name;
  Shape shape;
};

// "17.self_attn.q_proj.weight": a layer's number and what follows its dot. Nothing when there is no number, or one with
// superfluous zeros.
struct NumberedName {
  std::int32_t number;
  std::string_view rest;
};
std::optional<NumberedName> split_number(std::string_view name);

// The length of an axis, or a number of tensors. Requires: the configuration has been checked.
using Length = std::uint64_t (*)(const ConfigView& view);
using Needed = bool (*)(const ConfigView& view);

// The lengths that most architectures have.
namespace axis {
inline std::uint64_t vocabulary(const ConfigView& view) { return static_cast<std::uint64_t>(view.config.vocab_size); }
inline std::uint64_t positions(const ConfigView& view) {
  return static_cast<std::uint64_t>(view.config.max_position_embeddings);
}
inline std::uint64_t hidden(const ConfigView& view) { return static_cast<std::uint64_t>(view.config.hidden_size); }
inline std::uint64_t inner(const ConfigView& view) { return static_cast<std::uint64_t>(view.config.intermediate_size); }
inline std::uint64_t head(const ConfigView& view) { return static_cast<std::uint64_t>(view.config.head_dim); }
inline std::uint64_t heads(const ConfigView& view) {
  return static_cast<std::uint64_t>(view.config.num_attention_heads);
}
inline std::uint64_t queries(const ConfigView& view) {
  return static_cast<std::uint64_t>(view.config.num_attention_heads * view.config.head_dim);
}
inline std::uint64_t keys(const ConfigView& view) {
  return static_cast<std::uint64_t>(view.config.num_key_value_heads * view.config.head_dim);
}
}  // namespace axis

struct TensorRow {
  std::string_view name;  // of a layer's tensor: what follows the layer's number. With a "*" there are several, with
                          // numbers from 0 there
  std::array<Length, 4> axes;                                               // from the outermost; null: no more
  Needed needed = nullptr;                                                  // null: by every model
  bool (*needed_in)(const ConfigView& view, std::int64_t layer) = nullptr;  // null: by every layer
  Length copies = nullptr;                                                  // how many, where there is a "*"
};

// Functions of a configuration require that it has been checked.
struct TensorTable {
  std::string_view layers;  // begins the names of the layers' tensors: "model.layers."
  std::span<const TensorRow> first;
  std::span<const TensorRow> layer;
  std::span<const TensorRow> last;

  // What a model of that configuration needs, in canonical order: outside the layers, of one layer, and all in all.
  std::vector<ExpectedTensor> before_layers(const ConfigView& view) const;
  std::vector<ExpectedTensor> of_layer(const ConfigView& view, std::int64_t layer_number) const;
  std::vector<ExpectedTensor> after_layers(const ConfigView& view) const;
  std::vector<ExpectedTensor> all(const ConfigView& view) const;

  // Is it the name of a tensor of some model, of any number of layers?
  bool has(std::string_view name) const;

  // Of a model of that configuration, but for the number of layers?
  bool has(std::string_view name, const ConfigView& view) const;

  // The layer that a name speaks of, and the tensor's name there. Nothing for tensors outside the layers.
  std::optional<NumberedName> in_layer(std::string_view name) const;
};

}  // namespace poise
