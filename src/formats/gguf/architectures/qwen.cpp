// llama.cpp's names of tensors and keys for Qwen 2 and 3.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

// llama.cpp rotates rows of the following models in the order of transformers. Of Qwen's biases it has those of q, k
// and v.
constexpr std::array kQwenLayer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight", Change::stacked},
    {"ffn_up_exps.weight", "mlp.experts.*.up_proj.weight", Change::stacked},
    {"ffn_down_exps.weight", "mlp.experts.*.down_proj.weight", Change::stacked},
});

constexpr std::array kQwen3MoeKeys =
    std::to_array<KeyRow>({{"expert_count", "num_experts"}, {"expert_count", "num_local_experts"}});

constexpr std::array kQwen3MoeFixed =
    std::to_array<FixedKey>({{"hidden_act", std::string_view("silu"), false}, {"norm_topk_prob", true, true}});

}  // namespace

constinit const Architecture qwen2 = {.name = "qwen2",
                                      .model_type = "qwen2",
                                      .whole = kWhole,
                                      .layer = kQwenLayer,
                                      .shared_keys = kSharedKeys,
                                      .fixed = kSilu};

constinit const Architecture qwen3 = {.name = "qwen3",
                                      .model_type = "qwen3",
                                      .whole = kWhole,
                                      .layer = kQwenLayer,
                                      .shared_keys = kSharedKeys,
                                      .fixed = kSilu,
                                      .implied_flags = kAttentionBiasFlag};

constinit const Architecture qwen3_moe = {.name = "qwen3moe",
                                          .model_type = "qwen3_moe",
                                          .whole = kWhole,
                                          .layer = kQwenLayer,
                                          .has_experts = true,
                                          .keys = kQwen3MoeKeys,
                                          .shared_keys = kSharedKeys,
                                          .fixed = kQwen3MoeFixed,
                                          .implied_flags = kAttentionBiasFlag};

}  // namespace poise::gguf::architectures
