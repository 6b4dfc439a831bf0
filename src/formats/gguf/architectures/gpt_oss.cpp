// llama.cpp's names of tensors and keys for gpt-oss.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

constexpr std::array kGptOssLayer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate_inp.weight", "mlp.router.weight"},
    {"ffn_gate_inp.bias", "mlp.router.bias"},
    {"ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight", Change::stacked},
    {"ffn_gate_exps.bias", "mlp.experts.*.gate_proj.bias", Change::stacked},
    {"ffn_up_exps.weight", "mlp.experts.*.up_proj.weight", Change::stacked},
    {"ffn_up_exps.bias", "mlp.experts.*.up_proj.bias", Change::stacked},
    {"ffn_down_exps.weight", "mlp.experts.*.down_proj.weight", Change::stacked},
    {"ffn_down_exps.bias", "mlp.experts.*.down_proj.bias", Change::stacked},
});

// The configuration of gpt-oss has one length.
constexpr std::array kGptOssKeys = std::to_array<KeyRow>({{"expert_feed_forward_length", "intermediate_size"}});

constexpr std::array kGptOssFixed =
    std::to_array<FixedKey>({{"hidden_act", std::string_view("silu"), false}, {"attention_bias", true, false}});

}  // namespace

constinit const Architecture gpt_oss = {.name = "gpt-oss",
                                        .model_type = "gpt_oss",
                                        .whole = kWhole,
                                        .layer = kGptOssLayer,
                                        .has_experts = true,
                                        .keys = kGptOssKeys,
                                        .shared_keys = kSharedKeys,
                                        .fixed = kGptOssFixed,
                                        .implied_flags = kAttentionBiasFlag,
                                        .window_period = 2,
                                        .needs_output = true};

}  // namespace poise::gguf::architectures
