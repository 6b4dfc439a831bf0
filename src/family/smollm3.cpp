// Describes SmolLM3. Keys and defaults are those of SmolLM3Config of transformers. The model computes as Llama does,
// but some layers do not rotate q and k: those with a 0 in no_rope_layers, by default every no_rope_layer_interval-th.
// With use_sliding_window, these layers have a window.
#include "family/families.hpp"

#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/decoder_family.hpp"

namespace poise::smollm3 {
namespace {

Config read_config(const ConfigKeys& keys) {
  Config config = read_decoder_config(keys, {.num_key_value_heads = 4,
                                             .max_position_embeddings = 32768,
                                             .rope_theta = 2000000,
                                             .rms_norm_eps = 1e-6F,
                                             .tie_word_embeddings = true});
  if (!keys.read_boolean("use_sliding_window").value_or(false)) config.sliding_window = 0;
  return config;
}

bool rotates_layer(const ConfigView& view, std::int64_t layer) {
  if (const Value::Array* rope = view.keys().find_array("no_rope_layers")) {
    const Value& rotates = (*rope)[static_cast<std::size_t>(layer)];
    return !(rotates == Value(0) || rotates == Value(false));
  }
  return (layer + 1) % view.keys().read_integer("no_rope_layer_interval").value_or(4) != 0;
}

bool is_sliding(const ConfigView& view, std::int64_t layer) {
  return view.config.sliding_window > 0 && !rotates_layer(view, layer);
}

void check_layers(const ConfigView& view) {
  const std::int64_t layers = view.config.num_hidden_layers;
  if (const Value::Array* rope = view.keys().find_array("no_rope_layers");
      rope != nullptr && std::ssize(*rope) < layers) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("no_rope_layers has {} layers, num_hidden_layers is {}", rope->size(), layers), {});
  }
  const std::int64_t interval = view.keys().read_integer("no_rope_layer_interval").value_or(4);
  if (interval < 1)
    throw Error(ErrorKind::invalid_file, fmt::format("no_rope_layer_interval is {}, expected 1 or more", interval), {});
}

DecoderPlan plan(const ConfigView& view) {
  check_layers(view);
  DecoderPlan plan = make_decoder_plan(view);
  set_windows(plan, view, find_sliding_layers(view, is_sliding));
  for (std::size_t layer = 0; layer < plan.layers.size(); ++layer) {
    if (!rotates_layer(view, static_cast<std::int64_t>(layer))) plan.layers[layer].rope = std::nullopt;
  }
  return plan;
}

constexpr std::array kFollowed = list_followed_keys(
    {"attention_bias", "mlp_bias", "no_rope_layers", "no_rope_layer_interval", "use_sliding_window", "layer_types"});

}  // namespace

constexpr Family kSmolLm3Family = make_decoder_family(
    "smollm3", "SmolLM3ForCausalLM", "SmolLM3", kLlamaLayer,
    {.read_config = read_config, .plan = plan, .followed = kFollowed, .window_switch = "use_sliding_window"});

}  // namespace poise::smollm3
