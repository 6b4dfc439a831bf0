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

// Lists, by complete names.
struct List {
  std::string_view name;
  ValueType items;
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

constexpr std::array kGeneralLists = std::to_array<List>({
    {"tags", ValueType::text},
    {"languages", ValueType::text},
    {"datasets", ValueType::text},
});

constexpr std::array kVocabularyLists = std::to_array<List>({
    {"tokens", ValueType::text},
    {"merges", ValueType::text},
    {"scores", ValueType::f32},
    {"token_type", ValueType::i32},
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

std::optional<EntryType> type_in(std::span<const Ending> endings, std::string_view name) {
  const auto found = std::ranges::find_if(endings, [&](const Ending& row) { return name.ends_with(row.ending); });
  return found == endings.end() ? std::nullopt : std::optional(EntryType{found->type});
}

std::optional<EntryType> list_type_in(std::span<const List> lists, std::string_view name) {
  const auto found = std::ranges::find(lists, name, &List::name);
  return found == lists.end() ? std::nullopt : std::optional(EntryType{ValueType::array, found->items});
}

}  // namespace

std::optional<EntryType> hyperparameter_type(std::string_view name) { return type_in(kHyperparameters, name); }
std::optional<EntryType> general_key_type(std::string_view name) { return list_type_in(kGeneralLists, name); }
std::optional<EntryType> vocabulary_key_type(std::string_view name) {
  const auto list = list_type_in(kVocabularyLists, name);
  return list ? list : type_in(kVocabulary, name);
}

}  // namespace poise::gguf
