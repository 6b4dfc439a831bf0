// llama.cpp's names of tensors and keys for Llama, Mistral, Mixtral and SmolLM3.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

// llama.cpp has no biases for output and feed-forward matrices.
constexpr std::array kSmolLm3Layer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Change::queries},
    {"attn_q.bias", "self_attn.q_proj.bias", Change::queries},
    {"attn_k.weight", "self_attn.k_proj.weight", Change::keys},
    {"attn_k.bias", "self_attn.k_proj.bias", Change::keys},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

constexpr std::array kLlamaLayer = joined(kSmolLm3Layer, std::to_array<NameRow>({
                                                             {"attn_output.bias", "self_attn.o_proj.bias"},
                                                             {"ffn_gate.bias", "mlp.gate_proj.bias"},
                                                             {"ffn_up.bias", "mlp.up_proj.bias"},
                                                             {"ffn_down.bias", "mlp.down_proj.bias"},
                                                         }));

constexpr std::array kMixtralLayer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Change::queries},
    {"attn_k.weight", "self_attn.k_proj.weight", Change::keys},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate_inp.weight", "block_sparse_moe.gate.weight"},
    {"ffn_gate_exps.weight", "block_sparse_moe.experts.*.w1.weight", Change::stacked},
    {"ffn_down_exps.weight", "block_sparse_moe.experts.*.w2.weight", Change::stacked},
    {"ffn_up_exps.weight", "block_sparse_moe.experts.*.w3.weight", Change::stacked},
    // Files from before April 2024 have a tensor for each expert.
    {"ffn_gate.*.weight", "block_sparse_moe.experts.*.w1.weight"},
    {"ffn_down.*.weight", "block_sparse_moe.experts.*.w2.weight"},
    {"ffn_up.*.weight", "block_sparse_moe.experts.*.w3.weight"},
});

// A factor of attention by position that Poise does not implement.
constexpr std::array kMistral3Keys =
    std::to_array<KeyRow>({{"attention.temperature_scale", "llama_4_scaling_beta", kNumber}});

constexpr std::array kLlamaImpliedFlags =
    std::to_array<ImpliedFlag>({{"self_attn.q_proj.bias", "attention_bias"}, {"mlp.gate_proj.bias", "mlp_bias"}});

}  // namespace

constinit const Architecture llama = {.name = "llama",
                                      .model_type = "llama",
                                      .whole = kWhole,
                                      .layer = kLlamaLayer,
                                      .shared_keys = kSharedKeys,
                                      .fixed = kSilu,
                                      .implied_flags = kLlamaImpliedFlags,
                                      .holds_frequency_factors = true,
                                      .holds_long_factors = true};

constinit const Architecture mistral = {.name = "llama",
                                        .model_type = "mistral",
                                        .whole = kWhole,
                                        .layer = kLlamaLayer,
                                        .shared_keys = kSharedKeys,
                                        .fixed = kSilu};

constinit const Architecture mixtral = {.name = "llama",
                                        .model_type = "mixtral",
                                        .whole = kWhole,
                                        .layer = kMixtralLayer,
                                        .has_experts = true,
                                        .shared_keys = kSharedKeys,
                                        .fixed = kSilu};

// Mistral Small 3.1 and later, in llama.cpp's conversion.
constinit const Architecture mistral3 = {.name = "mistral3",
                                         .model_type = "mistral",
                                         .whole = kWhole,
                                         .layer = kLlamaLayer,
                                         .keys = kMistral3Keys,
                                         .shared_keys = kSharedKeys,
                                         .fixed = kSilu};

constinit const Architecture smollm3 = {.name = "smollm3",
                                        .model_type = "smollm3",
                                        .whole = kWhole,
                                        .layer = kSmolLm3Layer,
                                        .shared_keys = kSharedKeys,
                                        .fixed = kSilu,
                                        .implied_flags = kLlamaImpliedFlags,
                                        .unrotated_period = 4};

}  // namespace poise::gguf::architectures
