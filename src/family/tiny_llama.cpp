#include "family/families.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "family/decoder_family.hpp"

namespace poise::tiny_llama {
namespace {

constexpr std::string_view kEmbedding = "embedding.weight";
constexpr std::string_view kPositions = "position_embedding.weight";
constexpr std::string_view kLayers = "layers.";
constexpr std::string_view kOutput = "output_projection.weight";
constexpr std::string_view kActivation = "gelu_tanh";

constexpr std::array kFirst = std::to_array<TensorRow>({
    {kEmbedding, {axis::vocabulary, axis::hidden}},
    {kPositions, {axis::positions, axis::hidden}},
});

constexpr std::array kLayer = std::to_array<TensorRow>({
    {"attention.query.weight", {axis::hidden, axis::hidden}},
    {"attention.key.weight", {axis::hidden, axis::hidden}},
    {"attention.value.weight", {axis::hidden, axis::hidden}},
    {"attention.output.weight", {axis::hidden, axis::hidden}},
    {"ffn.linear1.weight", {axis::hidden, axis::inner}},
    {"ffn.linear1.bias", {axis::inner}},
    {"ffn.linear2.weight", {axis::inner, axis::hidden}},
    {"ffn.linear2.bias", {axis::hidden}},
    {"norm1.weight", {axis::hidden}},
    {"norm1.bias", {axis::hidden}},
    {"norm2.weight", {axis::hidden}},
    {"norm2.bias", {axis::hidden}},
});

constexpr std::array kLast = std::to_array<TensorRow>({{kOutput, {axis::hidden, axis::vocabulary}}});

Config read_config(const ConfigKeys& keys) {
  Config config = make_tiny_llama_config({.model_dim = keys.require_integer("hidden_size"),
                                          .layers = keys.require_integer("num_hidden_layers"),
                                          .heads = keys.require_integer("num_attention_heads"),
                                          .ffn_hidden_dim = keys.require_integer("intermediate_size"),
                                          .positions = keys.require_integer("max_position_embeddings"),
                                          .vocabulary = keys.require_integer("vocab_size"),
                                          .dropout = keys.read_number("dropout").value_or(0.0F)});
  // find_faults() refuses other values than those that follow from the sizes.
  config.hidden_act = keys.read_text("hidden_act").value_or(config.hidden_act);
  config.tie_word_embeddings = keys.read_boolean("tie_word_embeddings").value_or(false);
  config.num_key_value_heads = keys.read_integer("num_key_value_heads").value_or(config.num_key_value_heads);
  config.head_dim = keys.read_integer("head_dim").value_or(config.head_dim);
  config.sliding_window = std::max<std::int64_t>(0, keys.read_integer("sliding_window").value_or(0));
  config.rms_norm_eps = keys.read_number("rms_norm_eps").value_or(config.rms_norm_eps);
  config.rope_theta = keys.read_number("rope_theta").value_or(config.rope_theta);
  config.initializer_range = keys.read_number("initializer_range").value_or(config.initializer_range);
  return config;
}

// Returns a sentence for each value that a Tiny Llama cannot have.
std::vector<std::string> find_faults(const ConfigView& view) {
  const Config& config = view.config;
  std::vector<std::string> faults;
  const auto expect = [&](bool right, std::string_view fault) {
    if (!right) faults.emplace_back(fault);
  };
  const std::int64_t heads = config.num_attention_heads;
  expect(config.hidden_size % heads == 0,
         fmt::format("hidden_size {} is not a multiple of num_attention_heads {}", config.hidden_size, heads));
  expect(config.hidden_size % heads != 0 || config.head_dim == config.hidden_size / heads,
         fmt::format("head_dim is {}, a Tiny Llama has hidden_size / num_attention_heads = {}", config.head_dim,
                     config.hidden_size / heads));
  expect(config.num_key_value_heads == heads,
         fmt::format("num_key_value_heads is {}, a Tiny Llama has one for each of its {} heads",
                     config.num_key_value_heads, heads));
  expect(config.vocab_size > 0, "vocab_size is 0, expected at least 1");
  expect(config.hidden_act == kActivation,
         fmt::format("hidden_act is \"{}\", a Tiny Llama has {}", config.hidden_act, kActivation));
  expect(!config.tie_word_embeddings, "tie_word_embeddings is true, a Tiny Llama has an output projection of its own");
  expect(config.sliding_window == 0, fmt::format("sliding_window is {}, a Tiny Llama has none", config.sliding_window));
  expect(config.rms_norm_eps == kTinyLlamaNormEps,
         fmt::format("rms_norm_eps is {}, a Tiny Llama's norms have {}", config.rms_norm_eps, kTinyLlamaNormEps));
  expect(config.dropout >= 0.0F && config.dropout <= 1.0F,
         fmt::format("dropout is {}, expected 0 to 1", config.dropout));
  return faults;
}

// Plans this computation, with x = embedding + position, for each layer:
//
//   x += output(attention(query(n), key(n), value(n)))   with n = layer_norm(x, norm1)
//   x += linear2(gelu(linear1(m) + bias)) + bias         with m = layer_norm(x, norm2)
//
// and at the end logits = output_projection(x).
DecoderPlan plan(const ConfigView& view) {
  DecoderPlan plan = make_gpt_plan(view.config);
  plan.embedding = kEmbedding;
  plan.positions = kPositions;
  plan.layer_names = kLayers;
  plan.output = kOutput;
  plan.output_transposed = true;
  plan.attention_norm = "norm1";
  plan.mlp_norm = "norm2";
  plan.qkv = {{"attention.query"}, {"attention.key"}, {"attention.value"}};
  plan.o = {"attention.output"};
  plan.mlp = {{"ffn.linear1", true}};
  plan.down = {"ffn.linear2", true};
  plan.activation = ActivationKind::gelu_tanh;
  return plan;
}

constexpr std::array<std::string_view, 1> kFollowed = {"hidden_act"};

}  // namespace

constexpr Family kTinyLlamaFamily = {
    .model_type = kTinyLlama,
    .title = "Tiny Llama",
    .hidden_act = kActivation,
    .read_config = read_config,
    .faults = find_faults,
    .plan = plan,
    .followed = kFollowed,
    .has_dropout = true,
    .tensors = {.layers = kLayers, .first = kFirst, .layer = kLayer, .last = kLast},
    .embedding = kEmbedding,
    .output = kOutput,
    .end_of_text = 3,  // <eos>
};

}  // namespace poise::tiny_llama

namespace poise {

Config make_tiny_llama_config(const TinyLlamaSizes& sizes) {
  Config config;
  config.hidden_act = tiny_llama::kActivation;
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

}  // namespace poise
