// llama.cpp's names of tensors and keys for OLMo 2.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

constexpr std::array kOlmo2Layer = std::to_array<NameRow>({
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
});

}  // namespace

constinit const Architecture olmo2 = {.name = "olmo2",
                                      .model_type = "olmo2",
                                      .whole = kWhole,
                                      .layer = kOlmo2Layer,
                                      .shared_keys = kSharedKeys,
                                      .fixed = kSilu,
                                      .window_period = 4,
                                      .explicit_windows = true,
                                      .needs_output = true};

}  // namespace poise::gguf::architectures
