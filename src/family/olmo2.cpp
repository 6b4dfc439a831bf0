// Describes OLMo 2. Keys and defaults are those of Olmo2Config of transformers. The model computes as Llama does, but
// norms come after attention and feed-forward network, one norm covers all heads of q, and another covers all heads of
// k.
#include "family/families.hpp"

#include <array>

#include "family/decoder_family.hpp"

namespace poise::olmo2 {
namespace {

Config read_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.max_position_embeddings = 2048, .rms_norm_eps = 1e-5F});
}

DecoderPlan plan(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  plan.attention_norm = {};
  plan.attention_post_norm = "post_attention_layernorm";
  plan.mlp_norm = {};
  plan.mlp_post_norm = "post_feedforward_layernorm";
  plan.q_norm = "self_attn.q_norm";
  plan.k_norm = "self_attn.k_norm";
  return plan;
}

constexpr std::array kNorms = std::to_array<TensorRow>({
    {"self_attn.q_norm.weight", {axis::queries}},
    {"self_attn.k_norm.weight", {axis::keys}},
    {"post_attention_layernorm.weight", {axis::hidden}},
    {"post_feedforward_layernorm.weight", {axis::hidden}},
});
constexpr std::array kLayer =
    join_tables(kAttentionRows, make_qkv_biases(has_attention_bias), make_o_bias(has_attention_bias), kNorms, kMlpRows);

constexpr std::array kFollowed = list_followed_keys({"attention_bias"});

}  // namespace

constexpr Family kOlmo2Family = make_decoder_family("olmo2", "Olmo2ForCausalLM", "OLMo 2", kLayer,
                                                    {.read_config = read_config, .plan = plan, .followed = kFollowed});

}  // namespace poise::olmo2
