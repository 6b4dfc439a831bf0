// Describes GPT-2. Keys and defaults are those of GPT2Config of transformers. The model has learned positions, layer
// norms with a bias, matrices [in, out], q, k and v as columns of one matrix, a feed-forward network without gate, and
// an embedding tied to the output.
//
// Poise writes the hyperparameters under the names that other families have, so both names are valid.
#include "family/families.hpp"

#include <array>

#include <fmt/format.h>

#include "family/decoder_family.hpp"

namespace poise::gpt2 {
namespace {

constexpr std::string_view kEmbedding = "transformer.wte.weight";
constexpr std::string_view kPositions = "transformer.wpe.weight";
constexpr std::string_view kLayers = "transformer.h.";

std::optional<std::int64_t> read_either(const ConfigKeys& keys, std::string_view name, std::string_view other) {
  const auto number = keys.read_integer(name);
  return number ? number : keys.read_integer(other);
}

Config read_config(const ConfigKeys& keys) {
  Config config;
  config.hidden_act = keys.read_text("activation_function").value_or(keys.read_text("hidden_act").value_or("gelu_new"));
  config.tie_word_embeddings = keys.read_boolean("tie_word_embeddings").value_or(true);
  config.hidden_size = read_either(keys, "n_embd", "hidden_size").value_or(768);
  config.intermediate_size = read_either(keys, "n_inner", "intermediate_size").value_or(4 * config.hidden_size);
  config.max_position_embeddings = read_either(keys, "n_positions", "max_position_embeddings").value_or(1024);
  config.num_hidden_layers = read_either(keys, "n_layer", "num_hidden_layers").value_or(12);
  config.num_attention_heads = read_either(keys, "n_head", "num_attention_heads").value_or(12);
  config.num_key_value_heads = config.num_attention_heads;
  config.head_dim = config.num_attention_heads > 0 ? config.hidden_size / config.num_attention_heads : 0;
  config.vocab_size = keys.read_integer("vocab_size").value_or(0);
  const auto epsilon = keys.read_number("layer_norm_epsilon");
  config.rms_norm_eps = epsilon ? *epsilon : keys.read_number("rms_norm_eps").value_or(1e-5F);
  config.initializer_range = keys.read_number("initializer_range").value_or(0.02F);
  return config;
}

std::vector<std::string> find_faults(const ConfigView& view) {
  const Config& config = view.config;
  std::vector<std::string> faults;
  if (config.num_key_value_heads != config.num_attention_heads ||
      config.head_dim * config.num_attention_heads != config.hidden_size) {
    faults.push_back(
        fmt::format("num_attention_heads is {}, num_key_value_heads {}, head_dim {} and hidden_size {}: a GPT-2 has "
                    "equal numbers of heads, and hidden_size is their product with head_dim",
                    config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.hidden_size));
  }
  return faults;
}

DecoderPlan plan(const ConfigView& view) {
  DecoderPlan plan = make_gpt_plan(view.config);
  plan.embedding = kEmbedding;
  plan.positions = kPositions;
  plan.layer_names = kLayers;
  plan.norm = "transformer.ln_f";
  if (has_own_output(view)) plan.output = kDecoderOutput;
  plan.attention_norm = "ln_1";
  plan.mlp_norm = "ln_2";
  plan.qkv = {{"attn.c_attn", true}};
  plan.o = {"attn.c_proj", true};
  plan.mlp = {{"mlp.c_fc", true}};
  plan.down = {"mlp.c_proj", true};
  plan.activation = find_activation(view.config.hidden_act);
  return plan;
}

std::uint64_t queries_keys_values(const ConfigView& view) { return 3 * axis::hidden(view); }

constexpr std::array kFirst = std::to_array<TensorRow>(
    {{kEmbedding, {axis::vocabulary, axis::hidden}}, {kPositions, {axis::positions, axis::hidden}}});
constexpr std::array kLayer = std::to_array<TensorRow>({
    {"ln_1.weight", {axis::hidden}},
    {"ln_1.bias", {axis::hidden}},
    {"attn.c_attn.weight", {axis::hidden, queries_keys_values}},
    {"attn.c_attn.bias", {queries_keys_values}},
    {"attn.c_proj.weight", {axis::hidden, axis::hidden}},
    {"attn.c_proj.bias", {axis::hidden}},
    {"ln_2.weight", {axis::hidden}},
    {"ln_2.bias", {axis::hidden}},
    {"mlp.c_fc.weight", {axis::hidden, axis::inner}},
    {"mlp.c_fc.bias", {axis::inner}},
    {"mlp.c_proj.weight", {axis::inner, axis::hidden}},
    {"mlp.c_proj.bias", {axis::hidden}},
});
constexpr std::array kLast = std::to_array<TensorRow>({
    {"transformer.ln_f.weight", {axis::hidden}},
    {"transformer.ln_f.bias", {axis::hidden}},
    {kDecoderOutput, {axis::vocabulary, axis::hidden}, has_own_output},
});

constexpr std::array<std::string_view, 1> kFollowed = {"hidden_act"};
constexpr std::array<std::string_view, 6> kPrefixes = {"transformer.", "h.", "wte.", "wpe.", "ln_f.", "lm_head."};
constexpr std::array<NameBeginning, 1> kSpellings = {{{"transformer.", ""}}};
constexpr std::array<ComputedTensor, 2> kComputed = {
    {{".attn.bias", "n_positions"}, {".attn.masked_bias", "n_positions"}}};

}  // namespace

constexpr Family kGpt2Family = {
    .model_type = "gpt2",
    .transformers_class = "GPT2LMHeadModel",
    .title = "GPT-2",
    .hidden_act = "gelu_new",
    .read_config = read_config,
    .faults = find_faults,
    .plan = plan,
    .followed = kFollowed,
    .tensors = {.layers = kLayers, .first = kFirst, .layer = kLayer, .last = kLast},
    .prefixes = kPrefixes,
    .computed = kComputed,
    .spellings = kSpellings,
    .embedding = kEmbedding,
    .output = kDecoderOutput,
};

}  // namespace poise::gpt2
