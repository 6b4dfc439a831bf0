// Describes Gemma 1 to 3. Keys and defaults are those of GemmaConfig, Gemma2Config and Gemma3TextConfig of
// transformers. Gemma computes as Llama does, but its norms multiply by 1 + weight, the embedding is scaled by the root
// of hidden_size and tied to the output, and the activation is gelu by tanh. The later versions differ further:
//
//   Gemma 2   norms also come after attention and feed-forward network; scores and logits have soft caps; the scores'
//             scale is 1 / sqrt(query_pre_attn_scalar); every other layer has a window
//   Gemma 3   is like Gemma 2, but without the caps; each head of q and k is normed; five of six layers have a window,
//             and rotate by rope_local_base_freq without scaling
#include "family/families.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/decoder_family.hpp"

namespace poise::gemma {
namespace {

constexpr std::string_view kGelu = "gelu_pytorch_tanh";

Config read_gemma_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.num_key_value_heads = 16,
                                    .head_dim = 256,
                                    .max_position_embeddings = 8192,
                                    .tie_word_embeddings = true,
                                    .hidden_act = kGelu,
                                    .hidden_act_key = "hidden_activation"});
}
Config read_gemma2_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.num_key_value_heads = 4,
                                    .head_dim = 256,
                                    .max_position_embeddings = 8192,
                                    .sliding_window = 4096,
                                    .tie_word_embeddings = true,
                                    .hidden_act = kGelu,
                                    .hidden_act_key = "hidden_activation"});
}

// Returns the rope_theta of a kind of layers. The top-level key belongs to the layers without a window; newer files
// have an object for each kind.
float read_theta(const ConfigKeys& keys, std::string_view kind, float by_default) {
  const Attributes* parameters = keys.find_object("rope_parameters");
  const auto* object = get_member<Attributes>(parameters, kind);
  return object == nullptr ? by_default : ConfigKeys(*object, {}).read_rope_theta(by_default);
}

Config read_gemma3_config(const ConfigKeys& keys) {
  Config config = read_decoder_config(keys, {.hidden_size = 2304,
                                             .intermediate_size = 9216,
                                             .num_hidden_layers = 26,
                                             .num_attention_heads = 8,
                                             .num_key_value_heads = 4,
                                             .head_dim = 256,
                                             .max_position_embeddings = 131072,
                                             .sliding_window = 4096,
                                             .rope_theta = 1000000,
                                             .tie_word_embeddings = true,
                                             .hidden_act = kGelu,
                                             .hidden_act_key = "hidden_activation"});
  config.rope_theta = read_theta(keys, "full_attention", config.rope_theta);
  return config;
}

// Returns the activation. The first files of Gemma have "gelu", although these models were trained with its tanh
// approximation, which transformers uses, too.
ActivationKind find_gemma_activation(const ConfigView& view) {
  // transformers replaces "gelu" only in the first files' hidden_act, not in hidden_activation.
  const bool is_first = view.config.hidden_act == "gelu" && !view.keys().read_text("hidden_activation");
  return is_first ? ActivationKind::gelu_tanh : find_activation(view.config.hidden_act);
}

// Returns Gemma's plan. Those of Gemma 2 and 3 change some fields of it.
DecoderPlan make_gemma_plan(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  plan.norm_kind = NormKind::rms_plus_one;
  plan.embedding_scale = std::sqrt(static_cast<float>(view.config.hidden_size));
  plan.activation = find_gemma_activation(view);
  return plan;
}

// Returns a soft cap. 0 and null mean that there is no cap; `by_default` replaces an absent key.
float read_soft_cap(const ConfigView& view, std::string_view key, float by_default) {
  const ConfigKeys keys = view.keys();
  const float cap = keys.read_number(key).value_or(keys.is_absent(key) ? by_default : 0.0F);
  return cap == 0 ? 0.0F : read_positive_number(view, key, by_default);
}

void set_gemma2_fields(DecoderPlan& plan, const ConfigView& view, float cap, float logit_cap) {
  plan.attention_post_norm = "post_attention_layernorm";
  plan.mlp_norm = "pre_feedforward_layernorm";
  plan.mlp_post_norm = "post_feedforward_layernorm";
  plan.attention_scale = 1.0F / std::sqrt(read_positive_number(view, "query_pre_attn_scalar", 256));
  plan.attention_cap = read_soft_cap(view, "attn_logit_softcapping", cap);
  plan.logit_cap = read_soft_cap(view, "final_logit_softcapping", logit_cap);
}

DecoderPlan plan_gemma2(const ConfigView& view) {
  DecoderPlan plan = make_gemma_plan(view);
  set_gemma2_fields(plan, view, 50, 30);
  set_windows(plan, view, find_sliding_layers(view, is_even_layer));
  return plan;
}

bool is_sliding_by_default(const ConfigView& view, std::int64_t layer) {
  const std::int64_t pattern = view.keys().read_integer("sliding_window_pattern").value_or(6);
  if (pattern < 1)
    throw Error(ErrorKind::invalid_file, fmt::format("sliding_window_pattern is {}, expected 1 or more", pattern), {});
  return (layer + 1) % pattern != 0;
}

// Plans Gemma 3. Newer files have an object for each kind of layers in rope_parameters. make_gemma_plan() cannot read
// such objects, so it gets only the other keys.
DecoderPlan plan_gemma3(const ConfigView& view) {
  const Attributes* scaling = find_rope_scaling(view);
  const Attributes* full = get_member<Attributes>(scaling, "full_attention");
  const Attributes* local = get_member<Attributes>(scaling, "sliding_attention");
  const bool by_kind = full != nullptr || local != nullptr;
  std::vector<Attributes::Entry> entries;
  for (const auto& [key, value] : view.json) {
    if (!by_kind || std::ranges::find(kRopeObjects, key) == kRopeObjects.end()) entries.emplace_back(key, value);
  }
  const Attributes others = Attributes::from_unique(std::move(entries));
  DecoderPlan plan = make_gemma_plan({view.config, others});
  if (full != nullptr) plan.ropes.front() = make_rope_plan(view, full, {.theta = view.config.rope_theta});
  const float local_theta =
      read_theta(view.keys(), "sliding_attention", read_positive_number(view, "rope_local_base_freq", 10000));
  plan.ropes.push_back(make_rope_plan(view, local, {.theta = local_theta}));
  plan.rope_divisors = {};
  set_gemma2_fields(plan, view, 0, 0);
  plan.q_norm = "self_attn.q_norm";
  plan.k_norm = "self_attn.k_norm";
  set_windows(plan, view, find_sliding_layers(view, is_sliding_by_default));
  for (LayerPlan& layer : plan.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return plan;
}

constexpr std::array kFeedForwardNorms = std::to_array<TensorRow>({
    {"pre_feedforward_layernorm.weight", {axis::hidden}},
    {"post_feedforward_layernorm.weight", {axis::hidden}},
});
constexpr std::array kGemmaLayer = join_tables(kInputNorm, kAttentionRows, make_qkv_biases(has_attention_bias),
                                               make_o_bias(has_attention_bias), kPostAttentionNorm, kMlpRows);
constexpr std::array kGemma2Layer = join_tables(kGemmaLayer, kFeedForwardNorms);
constexpr std::array kGemma3Layer = join_tables(kGemma2Layer, kHeadNorms);

constexpr std::array kFollowedByGemma = list_followed_keys({"hidden_act", "hidden_activation", "attention_bias"});
constexpr std::array kFollowedByGemma2 = join_tables(
    kFollowedByGemma, std::to_array<std::string_view>({"layer_types", "query_pre_attn_scalar", "attn_logit_softcapping",
                                                       "final_logit_softcapping"}));
constexpr std::array kFollowedByGemma3 =
    join_tables(kFollowedByGemma2, std::to_array<std::string_view>({"rope_local_base_freq", "sliding_window_pattern"}));

}  // namespace

constexpr Family kGemmaFamily = make_decoder_family(
    "gemma", "GemmaForCausalLM", "Gemma", kGemmaLayer,
    {.hidden_act = kGelu, .read_config = read_gemma_config, .plan = make_gemma_plan, .followed = kFollowedByGemma});
constexpr Family kGemma2Family = make_decoder_family(
    "gemma2", "Gemma2ForCausalLM", "Gemma 2", kGemma2Layer,
    {.hidden_act = kGelu, .read_config = read_gemma2_config, .plan = plan_gemma2, .followed = kFollowedByGemma2});
constexpr Family kGemma3TextFamily = make_decoder_family(
    "gemma3_text", "Gemma3ForCausalLM", "Gemma 3", kGemma3Layer,
    {.hidden_act = kGelu, .read_config = read_gemma3_config, .plan = plan_gemma3, .followed = kFollowedByGemma3});
constexpr Family kGemma3Family =
    make_decoder_family("gemma3", "Gemma3ForConditionalGeneration", "Gemma 3", kGemma3Layer,
                        {.hidden_act = kGelu,
                         .read_config = read_gemma3_config,
                         .nested = kTextConfig,
                         .text_type = "gemma3_text",
                         .plan = plan_gemma3,
                         .followed = kFollowedByGemma3});

}  // namespace poise::gemma
