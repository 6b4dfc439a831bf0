#include "family/decoder_family.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "model/limits.hpp"

namespace poise {
namespace {

std::size_t convert_to_size(std::int64_t number) { return static_cast<std::size_t>(std::max<std::int64_t>(0, number)); }

struct ActivationName {
  std::string_view name;
  ActivationKind kind;
};
constexpr ActivationName kActivations[] = {
    {"silu", ActivationKind::silu},
    {"swish", ActivationKind::silu},
    {"gelu_pytorch_tanh", ActivationKind::gelu_tanh},
    {"gelu_new", ActivationKind::gelu_tanh},
    {"gelu_tanh", ActivationKind::gelu_tanh},
    {"gelu", ActivationKind::gelu},
    {"relu", ActivationKind::relu},
};

DecoderPlan make_sized_plan(const Config& config) {
  DecoderPlan plan;
  plan.hidden = convert_to_size(config.hidden_size);
  plan.inner = convert_to_size(config.intermediate_size);
  plan.heads = convert_to_size(config.num_attention_heads);
  plan.kv_heads = convert_to_size(config.num_key_value_heads);
  plan.head_size = convert_to_size(config.head_dim);
  plan.epsilon = config.rms_norm_eps;
  return plan;
}

}  // namespace

Config read_decoder_config(const ConfigKeys& keys, const ConfigDefaults& defaults) {
  const auto read_size_key = [&](std::string_view key, std::int64_t usual) {
    return usual == 0 ? keys.require_integer(key) : keys.read_integer(key).value_or(usual);
  };
  Config config;
  config.hidden_act = keys.read_text(defaults.hidden_act_key)
                          .value_or(keys.read_text("hidden_act").value_or(std::string(defaults.hidden_act)));
  config.tie_word_embeddings = keys.read_boolean("tie_word_embeddings").value_or(defaults.tie_word_embeddings);
  config.hidden_size = read_size_key("hidden_size", defaults.hidden_size);
  config.intermediate_size = read_size_key("intermediate_size", defaults.intermediate_size);
  config.max_position_embeddings =
      keys.read_integer("max_position_embeddings").value_or(defaults.max_position_embeddings);
  config.num_attention_heads = read_size_key("num_attention_heads", defaults.num_attention_heads);
  config.num_hidden_layers = read_size_key("num_hidden_layers", defaults.num_hidden_layers);
  const std::int64_t heads = config.num_attention_heads;
  config.num_key_value_heads = keys.read_integer("num_key_value_heads")
                                   .value_or(defaults.num_key_value_heads > 0 ? defaults.num_key_value_heads : heads);
  config.vocab_size = keys.read_integer("vocab_size").value_or(0);
  config.sliding_window = std::max<std::int64_t>(0, keys.read_integer("sliding_window").value_or(0));
  if (keys.is_absent("sliding_window"))
    config.sliding_window = defaults.sliding_window;  // null means no window; an absent key means the default
  config.rope_theta = keys.read_rope_theta(defaults.rope_theta);
  config.rms_norm_eps = keys.read_number("rms_norm_eps").value_or(defaults.rms_norm_eps);
  config.initializer_range = keys.read_number("initializer_range").value_or(0.02F);
  const std::int64_t usual_head = defaults.head_dim > 0 ? defaults.head_dim
                                  : heads > 0           ? config.hidden_size / heads
                                                        : 0;
  config.head_dim = keys.read_integer("head_dim").value_or(usual_head);
  return config;
}

bool has_attention_bias(const ConfigView& view) { return view.keys().read_boolean("attention_bias").value_or(false); }
bool has_mlp_bias(const ConfigView& view) { return view.keys().read_boolean("mlp_bias").value_or(false); }

std::vector<Linear> make_qkv_plan(bool bias) {
  return {{"self_attn.q_proj", bias}, {"self_attn.k_proj", bias}, {"self_attn.v_proj", bias}};
}

DecoderPlan make_gpt_plan(const Config& config) {
  DecoderPlan plan = make_sized_plan(config);
  plan.norm_kind = NormKind::layer;
  plan.transposed = true;
  plan.gated = false;
  plan.layers.assign(convert_to_size(config.num_hidden_layers), {.rope = std::nullopt});
  return plan;
}

DecoderPlan make_decoder_plan(const ConfigView& view, const RopeOptions& rope) {
  const Config& config = view.config;
  DecoderPlan plan = make_sized_plan(config);
  plan.embedding = kDecoderEmbedding;
  plan.layer_names = kDecoderLayers;
  plan.norm = "model.norm";
  if (has_own_output(view)) plan.output = kDecoderOutput;
  plan.attention_norm = "input_layernorm";
  plan.mlp_norm = "post_attention_layernorm";
  plan.qkv = make_qkv_plan(has_attention_bias(view));
  plan.o = {"self_attn.o_proj", has_attention_bias(view)};
  const bool mlp_bias = has_mlp_bias(view);
  plan.mlp = {{"mlp.gate_proj", mlp_bias}, {"mlp.up_proj", mlp_bias}};
  plan.down = {"mlp.down_proj", mlp_bias};
  const Attributes* scaling = find_rope_scaling(view);
  RopeOptions options = rope;
  options.theta = config.rope_theta;
  plan.ropes.push_back(make_rope_plan(view, scaling, options));
  if (scaling == nullptr) plan.rope_divisors = "rope_freqs.weight";
  plan.layers.assign(convert_to_size(config.num_hidden_layers), {.window = convert_to_size(config.sliding_window)});
  return plan;
}

ActivationKind find_activation(std::string_view name) {
  const auto* found = std::ranges::find(kActivations, name, &ActivationName::name);
  if (found != std::end(kActivations)) return found->kind;
  throw Error(ErrorKind::unsupported, fmt::format("the activation \"{}\" is not supported", name), {});
}

std::vector<bool> find_sliding_layers(const ConfigView& view,
                                      bool (*by_default)(const ConfigView& view, std::int64_t layer)) {
  const std::int64_t layers = view.config.num_hidden_layers;
  std::vector<bool> sliding(convert_to_size(layers));
  const Value::Array* types = view.keys().find_array("layer_types");
  if (types == nullptr) {
    for (std::int64_t layer = 0; layer < layers; ++layer) sliding[convert_to_size(layer)] = by_default(view, layer);
    return sliding;
  }
  if (types->size() != sliding.size()) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("layer_types has {} layers, num_hidden_layers is {}", types->size(), layers), {});
  }
  for (std::size_t layer = 0; layer < sliding.size(); ++layer) {
    const Value& type = (*types)[layer];
    sliding[layer] = type == Value("sliding_attention");
    if (!sliding[layer] && !(type == Value("full_attention"))) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("layer_types: layer {} is {}, only \"full_attention\" and \"sliding_attention\" are supported",
                      layer, to_json(type)),
          {});
    }
  }
  return sliding;
}

void set_windows(DecoderPlan& plan, const ConfigView& view, const std::vector<bool>& sliding) {
  const std::size_t window = convert_to_size(view.config.sliding_window);
  for (std::size_t layer = 0; layer < plan.layers.size(); ++layer) {
    if (sliding[layer] && window == 0)
      throw Error(ErrorKind::invalid_file, "layers attend to a sliding window, but sliding_window is missing", {});
    plan.layers[layer].window = sliding[layer] ? window : 0;
  }
}

std::int64_t read_size(const ConfigView& view, std::string_view key) {
  const std::int64_t number = view.keys().read_integer(key).value_or(0);
  return number < 0 || number > kMaxModelSize ? 0 : number;
}

float read_positive_number(const ConfigView& view, std::string_view key, float by_default) {
  const float number = view.keys().read_number(key).value_or(by_default);
  if (!(number > 0))
    throw Error(ErrorKind::invalid_file, fmt::format("{} is {}, expected more than 0", key, number), {});
  return number;
}

std::vector<std::string> find_expert_faults(const ConfigView& view) {
  return find_size_faults(
      view, {{"num_local_experts", kMaxExperts}, {"num_experts_per_tok", read_size(view, "num_local_experts")}});
}

std::vector<std::string> find_size_faults(const ConfigView& view, std::initializer_list<SizeKey> keys) {
  std::vector<std::string> faults;
  for (const auto& [key, most] : keys) {
    const auto number = view.keys().read_integer(key);
    if (!number) {
      faults.push_back(fmt::format("{} is missing", key));
    } else if (*number < 1 || *number > most) {
      faults.push_back(fmt::format("{} is {}, expected 1 to {}", key, *number, most));
    }
  }
  return faults;
}

}  // namespace poise
