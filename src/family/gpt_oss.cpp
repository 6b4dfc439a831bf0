// Describes gpt-oss. Keys and defaults are those of GptOssConfig of transformers. The model computes as Llama with
// biases does, but each query head has a sink, a score that takes its share of the attention and has no value. Every
// other layer has a window. Each token uses num_experts_per_tok of num_local_experts, with a clamped activation.
// expert_stacks.hpp describes how files store the experts.
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/decoder_family.hpp"
#include "family/expert_stacks.hpp"
#include "family/families.hpp"
#include "family/text_model.hpp"
#include "schemes/scheme.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/mx.hpp"

namespace poise::gpt_oss {
namespace {

constexpr float kGain = 1.702F;
constexpr float kLimit = 7.0F;

Config read_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.num_key_value_heads = 8,
                                    .head_dim = 64,
                                    .max_position_embeddings = 131072,
                                    .sliding_window = 128,
                                    .rope_theta = 150000,
                                    .rms_norm_eps = 1e-5F});
}

bool has_biases(const ConfigView& view) { return view.keys().read_boolean("attention_bias").value_or(true); }

bool is_separate(const ConfigView& view) { return view.experts == ExpertsStored::separate; }
bool is_stacked(const ConfigView& view) { return !is_separate(view); }
bool is_in_out(const ConfigView& view) { return view.experts == ExpertsStored::stacked_in_out; }
bool is_out_in(const ConfigView& view) { return view.experts == ExpertsStored::stacked_out_in; }

void require_supported(const ConfigView& view, std::string_view key, float supported) {
  const float found = view.keys().read_number(key).value_or(supported);
  if (found != supported)
    throw Error(ErrorKind::unsupported, fmt::format("{} is {}, only {} is supported", key, found, supported), {});
}

DecoderPlan plan(const ConfigView& view) {
  require_supported(view, "swiglu_alpha", kGain);
  require_supported(view, "swiglu_limit", kLimit);
  DecoderPlan plan = make_decoder_plan(view);
  plan.qkv = make_qkv_plan(has_biases(view));
  plan.o.bias = has_biases(view);
  plan.sinks = "self_attn.sinks";
  plan.activation = ActivationKind::clamped_swiglu;
  plan.experts = {.count = static_cast<std::size_t>(read_size(view, "num_local_experts")),
                  .used = static_cast<std::size_t>(read_size(view, "num_experts_per_tok")),
                  .router = {"mlp.router", true},
                  .stored = view.experts,
                  .bias = true,
                  .list = "mlp.experts",
                  .gate = is_separate(view) ? "gate_proj" : "gate_up_proj",
                  .up = "up_proj",
                  .down = "down_proj"};
  if (find_rope_scaling(view) == nullptr)
    throw Error(ErrorKind::unsupported, "rope_scaling is missing, which a gpt-oss model needs", {});
  set_windows(plan, view, find_sliding_layers(view, is_even_layer));
  for (LayerPlan& layer : plan.layers) layer.experts = true;
  return plan;
}

constexpr std::array kRest = std::to_array<TensorRow>({
    {"self_attn.sinks", {axis::heads}},
    {"post_attention_layernorm.weight", {axis::hidden}},
    {"mlp.router.weight", {axis::local_experts, axis::hidden}},
    {"mlp.router.bias", {axis::local_experts}},
    {"mlp.experts.gate_up_proj", {axis::local_experts, axis::hidden, axis::gate_and_up}, is_in_out},
    {"mlp.experts.gate_up_proj", {axis::local_experts, axis::gate_and_up, axis::hidden}, is_out_in},
    {"mlp.experts.gate_up_proj_bias", {axis::local_experts, axis::gate_and_up}, is_stacked},
    {"mlp.experts.down_proj", {axis::local_experts, axis::inner, axis::hidden}, is_in_out},
    {"mlp.experts.down_proj", {axis::local_experts, axis::hidden, axis::inner}, is_out_in},
    {"mlp.experts.down_proj_bias", {axis::local_experts, axis::hidden}, is_stacked},
    {"mlp.experts.*.gate_proj.weight", {axis::inner, axis::hidden}, is_separate, nullptr, axis::local_experts},
    {"mlp.experts.*.gate_proj.bias", {axis::inner}, is_separate, nullptr, axis::local_experts},
    {"mlp.experts.*.up_proj.weight", {axis::inner, axis::hidden}, is_separate, nullptr, axis::local_experts},
    {"mlp.experts.*.up_proj.bias", {axis::inner}, is_separate, nullptr, axis::local_experts},
    {"mlp.experts.*.down_proj.weight", {axis::hidden, axis::inner}, is_separate, nullptr, axis::local_experts},
    {"mlp.experts.*.down_proj.bias", {axis::hidden}, is_separate, nullptr, axis::local_experts},
});
constexpr std::array kLayer =
    join_tables(kInputNorm, kAttentionRows, make_qkv_biases(has_biases), make_o_bias(has_biases), kRest);

constexpr std::array kFollowed = list_followed_keys({"attention_bias", "layer_types", "num_local_experts"});

constexpr std::string_view kExperts = "mlp.experts.";

constexpr std::array<std::string_view, 2> kGateUp = {"gate_proj", "up_proj"};
constexpr std::array<std::string_view, 1> kDown = {"down_proj"};
constexpr std::array<ExpertStack, 2> kStacks = {{{"gate_up_proj", kGateUp}, {"down_proj", kDown}}};

// Returns the layer of a tensor of experts; std::nullopt for other tensors.
std::optional<std::int32_t> find_expert_layer(const Family& family, std::string_view name) {
  const std::string canonical = find_table_name(family, name);
  const auto numbered = family.tensors.split_layer_name(canonical);
  return numbered && numbered->rest.starts_with(kExperts) ? std::optional(numbered->number) : std::nullopt;
}

// Returns true if all matrices of experts are blocks of MXFP4.
bool are_all_mxfp4(const Model& model, const Family& family) {
  return std::ranges::all_of(model.tensors(), [&](const Tensor& tensor) {
    return !find_expert_layer(family, tensor.name) || tensor.shape.size() != 2 || is_mxfp4_blocks(tensor);
  });
}

ExpertsStored choose_storage(const Model& model, const Family& family, ExpertsStored from, WeightReader reader,
                             bool numbers) {
  if (reader == WeightReader::llama_cpp) return ExpertsStored::separate;
  if (from == ExpertsStored::stacked_out_in) return numbers ? ExpertsStored::stacked_in_out : from;
  if (from == ExpertsStored::stacked_in_out || reader == WeightReader::any) return from;
  return !numbers && are_all_mxfp4(model, family) ? ExpertsStored::stacked_out_in : ExpertsStored::stacked_in_out;
}

ExpertsStored find_experts_stored(const Model& model) {
  const Family& family = find_family_or_llama(model);
  const auto find_in_first_layer = [&](std::string_view name) {
    return find_weight(model, family, fmt::format("{}0.{}{}", family.tensors.layers, kExperts, name));
  };
  if (find_in_first_layer("0.gate_proj.weight") != nullptr) return ExpertsStored::separate;
  const Tensor* stack = find_in_first_layer(kStacks[0].name);
  const bool is_mx = stack != nullptr && get_mx_scheme(stack->layout) != nullptr;
  return is_mx ? ExpertsStored::stacked_out_in : ExpertsStored::stacked_in_out;
}

// Converts weights for a reader: llama.cpp needs separate experts, and transformers needs stacks.
std::optional<ConvertedWeights> convert_weights(const Model& model, WeightReader reader, bool numbers) {
  const Family& family = find_family_or_llama(model);
  const ExpertsStored from = find_experts_stored(model);
  const ExpertsStored to = choose_storage(model, family, from, reader, numbers);
  if (from == to) return keep_text_model(model, reader, numbers);
  ConvertedWeights result{Model(model.header()), {}, {}};
  std::map<std::int32_t, ExpertLayer> made;
  for (const Tensor& tensor : model.tensors()) {
    if (const auto number = find_expert_layer(family, tensor.name)) {
      std::string prefix = fmt::format("{}{}.{}", family.tensors.layers, *number, kExperts);
      const auto [layer, is_new] = made.try_emplace(*number, model, std::move(prefix), kStacks, result.model);
      if (is_new) layer->second.convert(from, to);
      if (layer->second.used().contains(&tensor)) {
        result.replaced.push_back(tensor.name);
        continue;
      }
    }
    Tensor named = tensor;
    if (reader == WeightReader::llama_cpp) named.name = find_table_name(family, tensor.name);
    if (named.name != tensor.name) result.replaced.push_back(tensor.name);
    result.model.add(std::move(named));
  }
  if (to == ExpertsStored::stacked_out_in) result.model.config_json.set("quantization_config", make_mxfp4_config());
  return result;
}

}  // namespace

constexpr Family kGptOssFamily = make_decoder_family("gpt_oss", "GptOssForCausalLM", "gpt-oss", kLayer,
                                                     {.read_config = read_config,
                                                      .faults = find_expert_faults,
                                                      .plan = plan,
                                                      .followed = kFollowed,
                                                      .find_experts_stored = find_experts_stored,
                                                      .convert_weights = convert_weights});

}  // namespace poise::gpt_oss
