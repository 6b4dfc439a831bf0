// llama.cpp's names of tensors and keys for GPT-2.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

constexpr std::array kGpt2Whole = std::to_array<NameRow>({
    {"token_embd.weight", "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {"output.weight", "lm_head.weight"},
});

constexpr std::array kGpt2Layer = std::to_array<NameRow>({
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Change::transposed},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Change::transposed},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Change::transposed},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Change::transposed},
    {"ffn_down.bias", "mlp.c_proj.bias"},
});

constexpr std::array kGpt2Keys = std::to_array<KeyRow>({
    {"context_length", "n_positions", kInteger, "max_position_embeddings"},
    {"embedding_length", "n_embd", kInteger, "hidden_size"},
    {"block_count", "n_layer", kInteger, "num_hidden_layers"},
    {"feed_forward_length", "n_inner", kInteger, "intermediate_size"},
    {"attention.head_count", "n_head", kInteger, "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", kNumber, "rms_norm_eps"},
    {"vocab_size", "vocab_size"},
});

constexpr std::array kGpt2Fixed = std::to_array<FixedKey>({
    {"activation_function", std::string_view("gelu_new"), false},
    {"scale_attn_weights", true, false},
    {"scale_attn_by_inverse_layer_idx", false, false},
});

}  // namespace

constinit const Architecture gpt2 = {.name = "gpt2",
                                     .model_type = "gpt2",
                                     .whole = kGpt2Whole,
                                     .layer = kGpt2Layer,
                                     .layers = "transformer.h.",
                                     .omitted = "transformer.",
                                     .keys = kGpt2Keys,
                                     .fixed = kGpt2Fixed,
                                     .rotates = false};

}  // namespace poise::gguf::architectures
