// Rows that architectures share, and the declarations of architectures: one file each in this folder.
#pragma once

#include <array>

#include "bytes/joined_rows.hpp"
#include "formats/gguf/architectures.hpp"

namespace poise::gguf {

inline constexpr std::array kWhole = std::to_array<NameRow>({
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
});

inline constexpr auto kNumber = KeyRow::Kind::number;
inline constexpr auto kInteger = KeyRow::Kind::integer;

inline constexpr std::array kSharedKeys = std::to_array<KeyRow>({
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", kNumber},
    {"rope.freq_base", "rope_theta", kNumber},
    {"vocab_size", "vocab_size"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
});

inline constexpr std::array kSilu = std::to_array<FixedKey>({{"hidden_act", std::string_view("silu"), false}});

inline constexpr std::array kAttentionBiasFlag =
    std::to_array<ImpliedFlag>({{"self_attn.q_proj.bias", "attention_bias"}});

namespace architectures {

extern const Architecture llama;
extern const Architecture mistral;
extern const Architecture mixtral;
extern const Architecture mistral3;
extern const Architecture qwen2;
extern const Architecture qwen3;
extern const Architecture qwen3_moe;
extern const Architecture gemma;
extern const Architecture gemma2;
extern const Architecture gemma3_text;
extern const Architecture phi3;
extern const Architecture gpt2;
extern const Architecture olmo2;
extern const Architecture gpt_oss;
extern const Architecture smollm3;

}  // namespace architectures

}  // namespace poise::gguf
