#include "formats/gguf/architectures.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace poise::gguf {
namespace {

constexpr std::string_view kLayersGguf = "blk.";
constexpr std::string_view kLayersCanonical = "model.layers.";

constexpr std::array kWhole = std::to_array<NameRow>({
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
});

constexpr std::array kLlamaLayer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", RowOrder::queries},
    {"attn_q.bias", "self_attn.q_proj.bias", RowOrder::queries},
    {"attn_k.weight", "self_attn.k_proj.weight", RowOrder::keys},
    {"attn_k.bias", "self_attn.k_proj.bias", RowOrder::keys},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

// llama.cpp turns their rows in the order of transformers.
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
});

// For a model_type with several rows, the first counts; so it does for a name.
constexpr std::array kArchitectures = std::to_array<Architecture>({
    {"llama", "llama", kWhole, kLlamaLayer},
    {"llama", "mistral", kWhole, kLlamaLayer},
    {"qwen2", "qwen2", kWhole, kQwenLayer},
    {"qwen3", "qwen3", kWhole, kQwenLayer},
});

constexpr std::array kKeys = std::to_array<KeyRow>({
    {"context_length", "max_position_embeddings", true},
    {"embedding_length", "hidden_size", true},
    {"block_count", "num_hidden_layers", true},
    {"feed_forward_length", "intermediate_size", true},
    {"attention.head_count", "num_attention_heads", true},
    {"attention.head_count_kv", "num_key_value_heads", true},
    {"attention.key_length", "head_dim", true},
    {"attention.sliding_window", "sliding_window", true},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false},
    {"rope.freq_base", "rope_theta", false},
    {"vocab_size", "vocab_size", true},
    {"expert_count", "num_local_experts", true},
    {"expert_used_count", "num_experts_per_tok", true},
});

using From = std::string_view NameRow::*;

std::optional<TensorName> translated(const Architecture& architecture, std::string_view name, From from, From to, std::string_view layers_from,
                                     std::string_view layers_to) {
  if (const auto row = std::ranges::find(architecture.whole, name, from); row != architecture.whole.end())
    return TensorName{std::string((*row).*to), row->rows};
  if (!name.starts_with(layers_from)) return std::nullopt;
  const std::string_view rest = name.substr(layers_from.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits == rest.size() || rest[digits] != '.') return std::nullopt;
  const auto row = std::ranges::find(architecture.layer, rest.substr(digits + 1), from);
  if (row == architecture.layer.end()) return std::nullopt;
  return TensorName{fmt::format("{}{}.{}", layers_to, rest.substr(0, digits), (*row).*to), row->rows};
}

}  // namespace

std::span<const KeyRow> key_rows() { return kKeys; }

const Architecture* architecture_named(std::string_view name) {
  const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
  return row == kArchitectures.end() ? nullptr : row;
}

const Architecture* architecture_of(std::string_view model_type) {
  const auto* row = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return row == kArchitectures.end() ? nullptr : row;
}

std::optional<TensorName> canonical_name(const Architecture& architecture, std::string_view gguf) {
  return translated(architecture, gguf, &NameRow::gguf, &NameRow::canonical, kLayersGguf, kLayersCanonical);
}

std::optional<TensorName> gguf_name(const Architecture& architecture, std::string_view canonical) {
  return translated(architecture, canonical, &NameRow::canonical, &NameRow::gguf, kLayersCanonical, kLayersGguf);
}

}  // namespace poise::gguf
