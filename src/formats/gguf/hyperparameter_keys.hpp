// What reading and writing hyperparameters share: keys that both handle themselves, and look-ups.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <poise/value.hpp>

#include "formats/gguf/architectures.hpp"

namespace poise::gguf {

inline constexpr std::string_view kCausal = "attention.causal";
inline constexpr std::string_view kPattern = "attention.sliding_window_pattern";
inline constexpr std::string_view kSlidingWindow = "attention.sliding_window";
inline constexpr std::string_view kAttentionFactor = "rope.scaling.attn_factor";
inline constexpr std::string_view kPlainFactor =
    "attn_factor";  // in rope_scaling: that key, where it is not a part of what a type computes
inline constexpr std::string_view kOldFactor = "rope.scale_linear";  // rope.scaling.factor in files of 2023
inline constexpr std::string_view kOriginalLength = "rope.scaling.original_context_length";
inline constexpr std::string_view kRotating = "rope.dimension_count";
inline constexpr std::string_view kSliding = "sliding_attention";
inline constexpr std::string_view kFull = "full_attention";
inline constexpr double kClose = 1e-6;       // numbers that differ only by rounding to float32
inline constexpr double kUsualScalar = 256;  // the default of query_pre_attn_scalar in Gemma 2 and 3

// Keys of rope_scaling, for the types that llama.cpp computes from them.
inline constexpr std::array kScalingKeys = std::to_array<KeyRow>({
    {"rope.scaling.factor", "factor", KeyRow::Kind::number},
    {kOriginalLength, "original_max_position_embeddings"},
    {"rope.scaling.yarn_ext_factor", "extrapolation_factor", KeyRow::Kind::number},
    {"rope.scaling.yarn_attn_factor", "attention_factor", KeyRow::Kind::number},
    {"rope.scaling.yarn_beta_fast", "beta_fast", KeyRow::Kind::number},
    {"rope.scaling.yarn_beta_slow", "beta_slow", KeyRow::Kind::number},
});

// llama.cpp requires them in every file.
inline constexpr std::array<std::string_view, 5> kRequired = {"context_length", "embedding_length", "block_count",
                                                              "feed_forward_length", "attention.head_count"};

inline std::vector<KeyRow> rows_of(const Architecture& architecture) {
  std::vector<KeyRow> rows(architecture.keys.begin(), architecture.keys.end());
  for (const KeyRow& row : architecture.shared_keys) {
    if (std::ranges::find(architecture.keys, row.gguf, &KeyRow::gguf) == architecture.keys.end()) rows.push_back(row);
  }
  return rows;
}

inline std::uint64_t integer(const Value* value) {
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  return number == nullptr ? 0 : *number;
}

inline const std::string* text(const Value* value) { return value == nullptr ? nullptr : value->get_if<std::string>(); }
inline const Attributes* map_in(const Value* value) { return value == nullptr ? nullptr : value->get_if<Attributes>(); }

inline Value as_value(const FixedKey& fixed) {
  if (const auto* truth = std::get_if<bool>(&fixed.value)) return Value(*truth);
  if (const auto* word = std::get_if<std::string_view>(&fixed.value)) return Value(*word);
  return Value();
}

inline bool fits(const Value& value, KeyRow::Kind kind) {
  return kind == KeyRow::Kind::integer ? value.get_if<std::uint64_t>() != nullptr : value.get_if<double>() != nullptr;
}

}  // namespace poise::gguf
