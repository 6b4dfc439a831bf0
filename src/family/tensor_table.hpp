// A TensorTable lists the weights of a family: their names and shapes, in canonical order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "family/config_view.hpp"

namespace poise {

// Describes a weight that a model of a certain configuration must have.
struct ExpectedTensor {
  std::string name;
  Shape shape;
};

// Holds a number in a name, such as a layer's or an expert's, and the name after its dot.
struct NumberedName {
  std::int32_t number;
  std::string_view rest;
};
// Splits "17.self_attn.q_proj.weight" at its first dot. Returns std::nullopt unless a number that fits 31 bits, without
// leading zeros, comes before the dot.
std::optional<NumberedName> split_number(std::string_view name);

// Returns the length of an axis, or a number of tensors. Requires: a checked configuration.
using Length = std::uint64_t (*)(const ConfigView& view);
using Needed = bool (*)(const ConfigView& view);

// Most families have axes of these lengths.
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
  std::string_view name;  // for a tensor of a layer, the name after the layer's number; "*" stands for numbers from 0
  std::array<Length, 4> axes;  // the outermost axis first; null after the last
  Needed needed = nullptr;     // null: required in every model
  bool (*needed_in)(const ConfigView& view, std::int64_t layer) = nullptr;  // null: required in every layer
  Length copies = nullptr;                                                  // how many tensors a "*" stands for
};

// Describes the tensors of a family. Functions that take a configuration require that it has been checked.
struct TensorTable {
  std::string_view layers;  // prefix of the layers' tensors: "model.layers."
  std::span<const TensorRow> first;
  std::span<const TensorRow> layer;
  std::span<const TensorRow> last;

  // Each function returns required tensors in canonical order: those before the layers, of one layer, after the layers,
  // or all.
  std::vector<ExpectedTensor> list_before_layers(const ConfigView& view) const;
  std::vector<ExpectedTensor> list_layer(const ConfigView& view, std::int64_t layer_number) const;
  std::vector<ExpectedTensor> list_after_layers(const ConfigView& view) const;
  std::vector<ExpectedTensor> list_all(const ConfigView& view) const;

  // Returns true if some model of the family, or some model with this configuration, has a tensor of that name. Does
  // not compare a layer's number with num_hidden_layers.
  bool has(std::string_view name) const;
  bool has(std::string_view name, const ConfigView& view) const;
  // Returns the shape of the weight of that name in a model with this configuration; std::nullopt if the model has no
  // such weight.
  std::optional<Shape> find_shape(std::string_view name, const ConfigView& view) const;

  // Returns the layer of a name, and the tensor's name in it; std::nullopt for tensors outside the layers.
  std::optional<NumberedName> split_layer_name(std::string_view name) const;
};

struct DecoderPlan;

// Returns the plan of the model's family. Returns std::nullopt without a configuration, for an unknown family, and if
// check_config() or Family::plan() refuses the configuration.
std::optional<DecoderPlan> make_known_plan(const Model& model);

// Returns true for a matrix that is stored [in, out], not [out, in] as in most families. `matrix` is its name in the
// family's table.
bool is_stored_transposed(const DecoderPlan& plan, std::string_view matrix);

}  // namespace poise
