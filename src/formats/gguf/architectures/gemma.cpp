// llama.cpp's names of tensors and keys for Gemma 1 to 3.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

// Gemma 1 and 2 have no output matrix in llama.cpp.
constexpr std::array kGemmaWhole = std::to_array<NameRow>({
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", Change::plus_one},
});

constexpr std::array kGemma3Whole = joined(kGemmaWhole, std::to_array<NameRow>({{"output.weight", "lm_head.weight"}}));

constexpr std::array kGemmaLayer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight", Change::plus_one},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight", Change::plus_one},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

// Gemma 2 and 3: norms before and after.
constexpr std::array kGemma2Layer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight", Change::plus_one},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", Change::plus_one},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", Change::plus_one},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", Change::plus_one},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Change::plus_one},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Change::plus_one},
});

constexpr std::array kGemma2Keys = std::to_array<KeyRow>({
    {.gguf = "attn_logit_softcapping", .config = "attn_logit_softcapping", .kind = kNumber, .never_none = 50},
    {.gguf = "final_logit_softcapping", .config = "final_logit_softcapping", .kind = kNumber, .never_none = 30},
});

constexpr std::array kGemma3Keys = std::to_array<KeyRow>({
    {"final_logit_softcapping", "final_logit_softcapping", kNumber},
    {"rope.freq_base_swa", "rope_local_base_freq", kNumber},
});

constexpr std::array kGemmaFixed =
    std::to_array<FixedKey>({{"hidden_activation", std::string_view("gelu_pytorch_tanh"), false}});

constexpr std::array kGemma3Fixed = std::to_array<FixedKey>(
    {{"hidden_activation", std::string_view("gelu_pytorch_tanh"), false}, {"attn_logit_softcapping", {}, false}});

}  // namespace

constinit const Architecture gemma = {.name = "gemma",
                                      .model_type = "gemma",
                                      .whole = kGemmaWhole,
                                      .layer = kGemmaLayer,
                                      .shared_keys = kSharedKeys,
                                      .fixed = kGemmaFixed};

constinit const Architecture gemma2 = {.name = "gemma2",
                                       .model_type = "gemma2",
                                       .whole = kGemmaWhole,
                                       .layer = kGemma2Layer,
                                       .keys = kGemma2Keys,
                                       .shared_keys = kSharedKeys,
                                       .fixed = kGemmaFixed,
                                       .window_period = 2,
                                       .usual_window = 4096,
                                       .wide_scale_layers = 46};

constinit const Architecture gemma3_text = {.name = "gemma3",
                                            .model_type = "gemma3_text",
                                            .whole = kGemma3Whole,
                                            .layer = kGemma2Layer,
                                            .keys = kGemma3Keys,
                                            .shared_keys = kSharedKeys,
                                            .fixed = kGemma3Fixed,
                                            .window_period = 6,
                                            .wide_scale_layers = 62};

}  // namespace poise::gguf::architectures
