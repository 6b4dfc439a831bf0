// Describes Qwen2, Qwen3 and Qwen3 MoE. Keys and defaults are those of Qwen2Config, Qwen3Config and Qwen3MoeConfig of
// transformers. The models compute as Llama does, with these differences:
//
//   Qwen2       q, k and v have biases; with use_sliding_window, layers from max_window_layers on have a window
//   Qwen3       each head of q and k is normed; attention_bias decides on biases; windows are those of Qwen2
//   Qwen3 MoE   is like Qwen3, with experts in every decoder_sparse_step-th layer that mlp_only_layers does not name;
//               with use_sliding_window, all layers have a window
#include "family/families.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "family/decoder_family.hpp"
#include "model/limits.hpp"

namespace poise::qwen {
namespace {

bool is_always_needed(const ConfigView&) { return true; }

// Reads the configuration. The window counts only with use_sliding_window.
Config read_config(const ConfigKeys& keys, const ConfigDefaults& defaults) {
  Config config = read_decoder_config(keys, defaults);
  if (!keys.read_boolean("use_sliding_window").value_or(false)) config.sliding_window = 0;
  return config;
}

Config read_qwen2_config(const ConfigKeys& keys) {
  return read_config(keys, {.max_position_embeddings = 32768, .sliding_window = 4096});
}
Config read_qwen3_config(const ConfigKeys& keys) {
  return read_config(keys, {.head_dim = 128, .max_position_embeddings = 32768, .sliding_window = 4096});
}
Config read_qwen3_moe_config(const ConfigKeys& keys) {
  return read_config(keys, {.num_key_value_heads = 4, .max_position_embeddings = 32768, .sliding_window = 4096});
}

bool is_sliding(const ConfigView& view, std::int64_t layer) {
  return view.config.sliding_window > 0 && layer >= view.keys().read_integer("max_window_layers").value_or(28);
}

DecoderPlan plan_qwen2(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  plan.qkv = make_qkv_plan(true);
  plan.o.bias = false;
  set_windows(plan, view, find_sliding_layers(view, is_sliding));
  return plan;
}

void add_head_norms(DecoderPlan& plan) {
  plan.q_norm = "self_attn.q_norm";
  plan.k_norm = "self_attn.k_norm";
}

DecoderPlan plan_qwen3(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  add_head_norms(plan);
  set_windows(plan, view, find_sliding_layers(view, is_sliding));
  return plan;
}

bool has_experts(const ConfigView& view, std::int64_t layer) {
  const Value::Array* without = view.keys().find_array("mlp_only_layers");
  if (without != nullptr && std::ranges::find(*without, Value(layer)) != without->end()) return false;
  return (layer + 1) % std::max<std::int64_t>(1, read_size(view, "decoder_sparse_step")) == 0;
}
bool has_mlp(const ConfigView& view, std::int64_t layer) { return !has_experts(view, layer); }

// Returns the key for the number of experts; transformers 5 writes num_local_experts.
std::string_view find_experts_key(const ConfigView& view) {
  return view.keys().read_integer("num_local_experts") ? "num_local_experts" : "num_experts";
}

std::vector<std::string> find_moe_faults(const ConfigView& view) {
  const std::string_view count = find_experts_key(view);
  std::vector<std::string> faults = find_size_faults(view, {{count, kMaxExperts},
                                                            {"num_experts_per_tok", read_size(view, count)},
                                                            {"moe_intermediate_size", kMaxModelSize}});
  if (const auto other = view.keys().read_integer("num_experts"); other && *other != read_size(view, count)) {
    faults.push_back(fmt::format("num_experts is {}, num_local_experts is {}, expected equal numbers", *other,
                                 read_size(view, count)));
  }
  if (const auto step = view.keys().read_integer("decoder_sparse_step"); step && *step < 1) {
    faults.push_back(fmt::format("decoder_sparse_step is {}, expected 1 or more", *step));
  }
  if (const Value::Array* without = view.keys().find_array("mlp_only_layers");
      without != nullptr && std::ssize(*without) > view.config.num_hidden_layers) {
    faults.push_back(fmt::format("mlp_only_layers has {} layers, but num_hidden_layers is only {}", without->size(),
                                 view.config.num_hidden_layers));
  }
  return faults;
}

DecoderPlan plan_qwen3_moe(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  add_head_norms(plan);
  plan.experts = {.count = static_cast<std::size_t>(read_size(view, find_experts_key(view))),
                  .used = static_cast<std::size_t>(read_size(view, "num_experts_per_tok")),
                  .router = {"mlp.gate"},
                  .normalized = view.keys().read_boolean("norm_topk_prob").value_or(false),
                  .list = "mlp.experts",
                  .gate = "gate_proj",
                  .up = "up_proj",
                  .down = "down_proj"};
  for (std::size_t layer = 0; layer < plan.layers.size(); ++layer)
    plan.layers[layer].experts = has_experts(view, static_cast<std::int64_t>(layer));
  return plan;
}

std::uint64_t experts(const ConfigView& view) {
  return static_cast<std::uint64_t>(read_size(view, find_experts_key(view)));
}
std::uint64_t expert_inner(const ConfigView& view) {
  return static_cast<std::uint64_t>(read_size(view, "moe_intermediate_size"));
}

constexpr std::array kQwen2Layer =
    join_tables(kInputNorm, kAttentionRows, make_qkv_biases(is_always_needed), kPostAttentionNorm, kMlpRows);
constexpr std::array kQwen3Layer =
    join_tables(kInputNorm, kAttentionRows, make_qkv_biases(has_attention_bias), make_o_bias(has_attention_bias),
                kHeadNorms, kPostAttentionNorm, kMlpRows);
constexpr std::array kExpertRows = std::to_array<TensorRow>({
    {"mlp.gate_proj.weight", {axis::inner, axis::hidden}, nullptr, has_mlp},
    {"mlp.up_proj.weight", {axis::inner, axis::hidden}, nullptr, has_mlp},
    {"mlp.down_proj.weight", {axis::hidden, axis::inner}, nullptr, has_mlp},
    {"mlp.gate.weight", {experts, axis::hidden}, nullptr, has_experts},
    {"mlp.experts.*.gate_proj.weight", {expert_inner, axis::hidden}, nullptr, has_experts, experts},
    {"mlp.experts.*.up_proj.weight", {expert_inner, axis::hidden}, nullptr, has_experts, experts},
    {"mlp.experts.*.down_proj.weight", {axis::hidden, expert_inner}, nullptr, has_experts, experts},
});
constexpr std::array kQwen3MoeLayer =
    join_tables(kInputNorm, kAttentionRows, make_qkv_biases(has_attention_bias), make_o_bias(has_attention_bias),
                kHeadNorms, kPostAttentionNorm, kExpertRows);

constexpr std::array kFollowedByQwen2 = list_followed_keys({"use_sliding_window", "max_window_layers", "layer_types"});
constexpr std::array kFollowedByQwen3 =
    list_followed_keys({"use_sliding_window", "max_window_layers", "layer_types", "attention_bias"});
constexpr std::array kFollowedByQwen3Moe =
    list_followed_keys({"use_sliding_window", "attention_bias", "num_experts", "num_local_experts"});

}  // namespace

constexpr Family kQwen2Family = make_decoder_family("qwen2", "Qwen2ForCausalLM", "Qwen2", kQwen2Layer,
                                                    {.read_config = read_qwen2_config,
                                                     .plan = plan_qwen2,
                                                     .followed = kFollowedByQwen2,
                                                     .window_switch = "use_sliding_window"});
constexpr Family kQwen3Family = make_decoder_family("qwen3", "Qwen3ForCausalLM", "Qwen3", kQwen3Layer,
                                                    {.read_config = read_qwen3_config,
                                                     .plan = plan_qwen3,
                                                     .followed = kFollowedByQwen3,
                                                     .window_switch = "use_sliding_window"});
constexpr Family kQwen3MoeFamily = make_decoder_family("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3 MoE", kQwen3MoeLayer,
                                                       {.read_config = read_qwen3_moe_config,
                                                        .faults = find_moe_faults,
                                                        .plan = plan_qwen3_moe,
                                                        .followed = kFollowedByQwen3Moe,
                                                        .window_switch = "use_sliding_window"});

}  // namespace poise::qwen
