#include "model/tiny_llama.hpp"

#include <array>
#include <iterator>

#include <fmt/format.h>

namespace poise {
namespace {

// What an axis of a layer's tensor counts.
enum class Axis : std::uint8_t { none, model, inner };

// One row per tensor of a layer, in the order of the file.
struct LayerTensor {
  std::string_view name;
  Axis rows;
  Axis columns;
};

constexpr std::array<LayerTensor, 12> kLayerTensors = {{
    {"attention.query.weight", Axis::model, Axis::model},
    {"attention.key.weight", Axis::model, Axis::model},
    {"attention.value.weight", Axis::model, Axis::model},
    {"attention.output.weight", Axis::model, Axis::model},
    {"ffn.linear1.weight", Axis::model, Axis::inner},
    {"ffn.linear1.bias", Axis::inner, Axis::none},
    {"ffn.linear2.weight", Axis::inner, Axis::model},
    {"ffn.linear2.bias", Axis::model, Axis::none},
    {"norm1.weight", Axis::model, Axis::none},
    {"norm1.bias", Axis::model, Axis::none},
    {"norm2.weight", Axis::model, Axis::none},
    {"norm2.bias", Axis::model, Axis::none},
}};

std::uint64_t unsigned_size(std::int64_t size) { return static_cast<std::uint64_t>(size); }

Shape layer_shape(const Config& config, const LayerTensor& row) {
  const auto length = [&](Axis axis) { return unsigned_size(axis == Axis::inner ? config.intermediate_size : config.hidden_size); };
  Shape shape = {length(row.rows)};
  if (row.columns != Axis::none) shape.push_back(length(row.columns));
  return shape;
}

}  // namespace

std::vector<ExpectedTensor> tiny_llama_embeddings(const Config& config) {
  const std::uint64_t width = unsigned_size(config.hidden_size);
  return {{std::string(kTinyLlamaEmbedding), {unsigned_size(config.vocab_size), width}},
          {"position_embedding.weight", {unsigned_size(config.max_position_embeddings), width}}};
}

std::vector<ExpectedTensor> tiny_llama_layer(const Config& config, std::int64_t layer) {
  std::vector<ExpectedTensor> tensors;
  tensors.reserve(std::size(kLayerTensors));
  for (const LayerTensor& row : kLayerTensors) tensors.push_back({fmt::format("{}{}.{}", kTinyLlamaLayers, layer, row.name), layer_shape(config, row)});
  return tensors;
}

ExpectedTensor tiny_llama_output(const Config& config) {
  return {"output_projection.weight", {unsigned_size(config.hidden_size), unsigned_size(config.vocab_size)}};
}

std::vector<ExpectedTensor> tiny_llama_tensors(const Config& config) {
  std::vector<ExpectedTensor> tensors = tiny_llama_embeddings(config);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) std::ranges::move(tiny_llama_layer(config, layer), std::back_inserter(tensors));
  tensors.push_back(tiny_llama_output(config));
  return tensors;
}

Config tiny_llama_config(const TinyLlamaSizes& sizes) {
  Config config;
  config.hidden_act = "gelu_tanh";
  config.hidden_size = sizes.model_dim;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.heads;
  config.head_dim = sizes.heads > 0 ? sizes.model_dim / sizes.heads : 0;
  config.intermediate_size = sizes.ffn_hidden_dim;
  config.max_position_embeddings = sizes.positions;
  config.vocab_size = sizes.vocabulary;
  config.rms_norm_eps = kTinyLlamaNormEps;
  config.dropout = sizes.dropout;
  return config;
}

std::vector<std::string> check_tiny_llama_config(const Config& config) {
  std::vector<std::string> faults;
  const auto expect = [&](bool right, std::string_view fault) {
    if (!right) faults.emplace_back(fault);
  };
  const std::int64_t heads = config.num_attention_heads;
  expect(config.hidden_size % heads == 0, fmt::format("hidden_size {} is no multiple of num_attention_heads {}", config.hidden_size, heads));
  expect(config.hidden_size % heads != 0 || config.head_dim == config.hidden_size / heads,
         fmt::format("head_dim is {}, a Tiny Llama has hidden_size / num_attention_heads = {}", config.head_dim, config.hidden_size / heads));
  expect(config.num_key_value_heads == heads,
         fmt::format("num_key_value_heads is {}, a Tiny Llama has one for each of its {} heads", config.num_key_value_heads, heads));
  expect(config.vocab_size > 0, "vocab_size is 0, expected at least 1");
  expect(config.hidden_act == "gelu_tanh", fmt::format("hidden_act is \"{}\", a Tiny Llama has gelu_tanh", config.hidden_act));
  expect(!config.tie_word_embeddings, "tie_word_embeddings is true, a Tiny Llama has an output projection of its own");
  expect(config.sliding_window == 0, fmt::format("sliding_window is {}, a Tiny Llama has none", config.sliding_window));
  expect(config.rms_norm_eps == kTinyLlamaNormEps, fmt::format("rms_norm_eps is {}, a Tiny Llama's norms have {}", config.rms_norm_eps, kTinyLlamaNormEps));
  expect(config.dropout >= 0.0F && config.dropout <= 1.0F, fmt::format("dropout is {}, expected 0 to 1", config.dropout));
  return faults;
}

}  // namespace poise
