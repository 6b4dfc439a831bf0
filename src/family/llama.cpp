// Keys and defaults: MistralConfig and LlamaConfig of transformers (docs/formats/huggingface.md). Matrices are [out, in]: y = W x.
#include "family/llama.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace poise {
namespace {

bool has_output(const Config& config) { return !config.tie_word_embeddings; }

constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::string_view kOutput = "lm_head.weight";

constexpr std::array kFirst = std::to_array<TensorRow>({{kEmbedding, {axis::vocabulary, axis::hidden}}});

constexpr std::array kLayer = std::to_array<TensorRow>({
    {"input_layernorm.weight", {axis::hidden}},
    {"self_attn.q_proj.weight", {axis::queries, axis::hidden}},
    {"self_attn.k_proj.weight", {axis::keys, axis::hidden}},
    {"self_attn.v_proj.weight", {axis::keys, axis::hidden}},
    {"self_attn.o_proj.weight", {axis::hidden, axis::queries}},
    {"post_attention_layernorm.weight", {axis::hidden}},
    {"mlp.gate_proj.weight", {axis::inner, axis::hidden}},
    {"mlp.up_proj.weight", {axis::inner, axis::hidden}},
    {"mlp.down_proj.weight", {axis::hidden, axis::inner}},
});

constexpr std::array kLast = std::to_array<TensorRow>({
    {"model.norm.weight", {axis::hidden}},
    {kOutput, {axis::vocabulary, axis::hidden}, has_output},
});

constexpr TensorTable kTensors = {.layers = "model.layers.", .first = kFirst, .layer = kLayer, .last = kLast};

constexpr std::array<std::string_view, 2> kPrefixes = {"model.", "lm_head."};
constexpr std::array<ComputedTensor, 1> kComputed = {{{".rotary_emb.inv_freq", "rope_theta"}}};

struct Defaults {
  std::int64_t max_position_embeddings;
  std::int64_t sliding_window;
  float rms_norm_eps;
};

Config read_config(const ConfigKeys& keys, const Defaults& defaults) {
  Config config;
  config.hidden_act = keys.text("hidden_act").value_or("silu");
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings").value_or(false);
  config.hidden_size = keys.required("hidden_size");
  config.intermediate_size = keys.required("intermediate_size");
  config.max_position_embeddings = keys.integer("max_position_embeddings").value_or(defaults.max_position_embeddings);
  config.num_attention_heads = keys.required("num_attention_heads");
  config.num_hidden_layers = keys.required("num_hidden_layers");
  config.num_key_value_heads = keys.integer("num_key_value_heads").value_or(config.num_attention_heads);
  config.vocab_size = keys.integer("vocab_size").value_or(0);
  config.sliding_window = std::max<std::int64_t>(0, keys.integer("sliding_window").value_or(0));
  if (keys.absent("sliding_window")) config.sliding_window = defaults.sliding_window;  // null means none; only absence means the default
  config.rope_theta = keys.rope_theta();
  config.rms_norm_eps = keys.number("rms_norm_eps").value_or(defaults.rms_norm_eps);
  config.initializer_range = keys.number("initializer_range").value_or(0.02F);
  const std::int64_t heads = config.num_attention_heads;
  config.head_dim = keys.integer("head_dim").value_or(heads > 0 ? config.hidden_size / heads : 0);
  return config;
}

Config read_mistral(const ConfigKeys& keys) { return read_config(keys, {.max_position_embeddings = 32768, .sliding_window = 4096, .rms_norm_eps = 1e-5F}); }
Config read_llama(const ConfigKeys& keys) { return read_config(keys, {.max_position_embeddings = 2048, .sliding_window = 0, .rms_norm_eps = 1e-6F}); }

std::vector<std::string> limits(const Config& config) {
  if (config.head_dim % 2 == 0) return {};
  return {fmt::format("head_dim is {}: rotary embeddings need an even number", config.head_dim)};
}

constexpr Family family(std::span<const std::string_view> model_types, Config (*read)(const ConfigKeys& keys)) {
  return {
      .model_types = model_types,
      .title = "Mistral or Llama",
      .hidden_act = "silu",
      .read_config = read,
      .limits = limits,
      .tensors = kTensors,
      .prefixes = kPrefixes,
      .computed = kComputed,
      .embedding = kEmbedding,
      .output = kOutput,
  };
}

constexpr std::array<std::string_view, 1> kMistral = {"mistral"};
constexpr std::array<std::string_view, 1> kLlama = {"llama"};

}  // namespace

constexpr Family kMistralFamily = family(kMistral, read_mistral);
constexpr Family kLlamaFamily = family(kLlama, read_llama);

}  // namespace poise
