#include "formats/gguf/key_types.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace poise::gguf {
namespace {

// Names with this suffix; the first match counts.
struct Ending {
  std::string_view ending;
  ValueType type;
};

constexpr std::array kHyperparameters = std::to_array<Ending>({
    {"attention.causal", ValueType::boolean},
    {"expert_weights_norm", ValueType::boolean},
    {"rope.scaling.finetuned", ValueType::boolean},
    {"use_parallel_residual", ValueType::boolean},
    {"_epsilon", ValueType::f32},
    {"_scale", ValueType::f32},
    {"attention.scale", ValueType::f32},
    {"_softcapping", ValueType::f32},
    {"rope.freq_base", ValueType::f32},
    {"rope.freq_base_swa", ValueType::f32},
    {"rope.scale_linear", ValueType::f32},
    {"rope.scaling.factor", ValueType::f32},
    {"rope.scaling.attn_factor", ValueType::f32},
    {"rope.scaling.yarn_ext_factor", ValueType::f32},
    {"rope.scaling.yarn_attn_factor", ValueType::f32},
    {"rope.scaling.yarn_beta_fast", ValueType::f32},
    {"rope.scaling.yarn_beta_slow", ValueType::f32},
    {"rope.scaling.yarn_log_multiplier", ValueType::f32},
    {"attention.clamp_kqv", ValueType::f32},
    {"attention.max_alibi_bias", ValueType::f32},
    {"_count", ValueType::u32},
    {"_count_kv", ValueType::u32},
    {"_length", ValueType::u32},
    {"_length_swa", ValueType::u32},
    {"_token_id", ValueType::u32},
    {"vocab_size", ValueType::u32},
    {"attention.sliding_window", ValueType::u32},
    {"rope.dimension_count_swa", ValueType::u32},
    {"expert_gating_func", ValueType::u32},
    {"pooling_type", ValueType::u32},
});

constexpr std::array kVocabulary = std::to_array<Ending>({
    {"_token_id", ValueType::u32},
    {"token_type_count", ValueType::u32},
    {"add_bos_token", ValueType::boolean},
    {"add_eos_token", ValueType::boolean},
    {"add_sep_token", ValueType::boolean},
    {"add_space_prefix", ValueType::boolean},
    {"remove_extra_whitespaces", ValueType::boolean},
});

std::optional<ValueType> type_in(std::span<const Ending> endings, std::string_view name) {
  const auto found = std::ranges::find_if(endings, [&](const Ending& row) { return name.ends_with(row.ending); });
  return found == endings.end() ? std::nullopt : std::optional(found->type);
}

}  // namespace

std::optional<ValueType> hyperparameter_type(std::string_view name) { return type_in(kHyperparameters, name); }
std::optional<ValueType> vocabulary_key_type(std::string_view name) { return type_in(kVocabulary, name); }

}  // namespace poise::gguf
