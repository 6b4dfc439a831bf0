// Converts hyperparameters: keys of config.json to GGUF's entries and tensors, and back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <poise/model.hpp>
#include <poise/value.hpp>

#include "formats/gguf/architectures.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

inline constexpr std::string_view kCausal = "attention.causal";
inline constexpr std::string_view kPattern = "attention.sliding_window_pattern";
inline constexpr std::string_view kSlidingWindow = "attention.sliding_window";
inline constexpr std::string_view kAttentionFactor = "rope.scaling.attn_factor";
// This key of rope_scaling has the number of kAttentionFactor for types other than yarn and longrope, which have
// attention_factor.
inline constexpr std::string_view kPlainFactor = "attn_factor";
inline constexpr std::string_view kOldFactor = "rope.scale_linear";  // the name of rope.scaling.factor in files of 2023
inline constexpr std::string_view kOriginalLength = "rope.scaling.original_context_length";
// llama.cpp divides yarn's factor of attention by the one with this scale: mscale_all_dim, with an mscale of 1.
inline constexpr std::string_view kYarnLog = "rope.scaling.yarn_log_multiplier";
inline constexpr std::string_view kOriginalPositions = "original_max_position_embeddings";  // in config.json
inline constexpr std::string_view kRotating = "rope.dimension_count";
inline constexpr std::string_view kSliding = "sliding_attention";
inline constexpr std::string_view kFull = "full_attention";
inline constexpr double kClose = 1e-6;       // numbers closer than this differ only by rounding to float32
inline constexpr double kUsualScalar = 256;  // the default of query_pre_attn_scalar in Gemma 2 and 3

// Maps llama.cpp's keys to those of rope_scaling. llama.cpp computes the types linear and yarn from these keys.
inline constexpr std::array kScalingKeys = std::to_array<KeyRow>({
    {"rope.scaling.factor", "factor", KeyRow::Kind::number},
    {kOriginalLength, "original_max_position_embeddings"},
    {"rope.scaling.yarn_ext_factor", "extrapolation_factor", KeyRow::Kind::number},
    {"rope.scaling.yarn_attn_factor", "attention_factor", KeyRow::Kind::number},
    {"rope.scaling.yarn_beta_fast", "beta_fast", KeyRow::Kind::number},
    {"rope.scaling.yarn_beta_slow", "beta_slow", KeyRow::Kind::number},
});

// llama.cpp requires these keys of every model.
inline constexpr std::array<std::string_view, 5> kRequired = {"context_length", "embedding_length", "block_count",
                                                              "feed_forward_length", "attention.head_count"};

// Returns the architecture's own rows, then the shared rows with other keys.
inline std::vector<KeyRow> list_key_rows(const Architecture& architecture) {
  std::vector<KeyRow> rows(architecture.keys.begin(), architecture.keys.end());
  for (const KeyRow& row : architecture.shared_keys) {
    if (std::ranges::find(architecture.keys, row.gguf, &KeyRow::gguf) == architecture.keys.end()) rows.push_back(row);
  }
  return rows;
}

// Returns 0 for null, and for a value that is not an integer of 0 or more.
inline std::uint64_t get_integer(const Value* value) {
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  return number == nullptr ? 0 : *number;
}

inline Value make_fixed_value(const FixedKey& fixed) {
  if (const auto* truth = std::get_if<bool>(&fixed.value)) return Value(*truth);
  if (const auto* word = std::get_if<std::string_view>(&fixed.value)) return Value(*word);
  return Value();
}

inline bool has_kind(const Value& value, KeyRow::Kind kind) {
  return kind == KeyRow::Kind::integer ? value.get_if<std::uint64_t>() != nullptr : value.get_if<double>() != nullptr;
}

// Holds factors of rotary embeddings. llama.cpp divides each frequency by its factor, and reads the factors from
// tensors. transformers computes them from `rope_scaling` of type llama3, or lists them there for type longrope. Each
// list has a factor for each rotated pair of a head, or is empty.
struct RopeFactors {
  std::vector<float> every;
  std::vector<float> long_contexts;
  std::vector<float> short_contexts;
};

struct RopeFactorRow {
  std::string_view gguf;  // the name of the tensor
  std::vector<float> RopeFactors::*factors;
  bool for_any_context;
};
inline constexpr std::array kRopeFactorRows = std::to_array<RopeFactorRow>({
    {"rope_freqs.weight", &RopeFactors::every, true},
    {"rope_factors_long.weight", &RopeFactors::long_contexts, false},
    {"rope_factors_short.weight", &RopeFactors::short_contexts, false},
});

// Computes the factors of rope_scaling of type llama3 for the frequencies theta^(-2 i / rotating); empty for invalid
// numbers.
std::vector<float> compute_llama3_factors(const Attributes& scaling, double theta, std::uint64_t rotating);

// Returns the rope_scaling that is equivalent to rope_freqs.weight: type llama3 with the numbers of Llama 3.1 to 3.3 if
// they match, else type longrope with one list for all contexts. Returns std::nullopt if there are no factors, or all
// are 1.
std::optional<Attributes> find_equivalent_scaling(const std::vector<float>& factors, double theta,
                                                  std::uint64_t positions);

// Computes the attention scale of longrope for a model extended from `original` positions: sqrt(1 + ln(positions /
// original) / ln(original)); 1 if positions <= original, or original <= 1.
double compute_longrope_attention(double positions, double original);

Value make_float_list(const std::vector<float>& numbers);
// Returns the numbers of a list; empty for null, and for a value that is not a list of numbers.
std::vector<float> parse_float_list(const Value* list);

// Returns the architecture of a file whose general.architecture is `name`, or null.
const Architecture* find_file_architecture(const Entries& entries, std::string_view name);

// Returns the type of scaling of rotary embeddings in a file: "linear", "yarn", ..., or "none".
std::string find_scaling_type(const Entries& entries, const Architecture& architecture);

Heads read_heads(const Entries& entries, const Architecture& architecture);

// Removes the entries for which config.json has keys, and returns their values under those keys. `model` has the file's
// tensors under transformers' names; `factors` come from tensors that belong to the configuration.
Attributes extract_config(Entries& entries, const Architecture& architecture, const Model& model,
                          const RopeFactors& factors);

// Returns why extract_config() leaves out a hyperparameter, as a sentence: the value of a key is of another kind, or a
// required key is missing. Returns std::nullopt if it leaves out none. Requires: extract_config() has not removed the
// entries.
std::optional<std::string> explain_unreadable_hyperparameter(const Entries& entries, const Architecture& architecture);

// Holds a model's configuration as entries and tensors of GGUF.
struct Hyperparameters {
  std::vector<Attributes::Entry> entries;
  RopeFactors factors;
  Heads heads;
  std::vector<std::string> differences;  // between llama.cpp's computation and the configuration's, one sentence each
  std::string refusal;                   // why llama.cpp could not run the model; empty: it could
};
Hyperparameters make_hyperparameters(const Model& model, const Architecture& architecture);

}  // namespace poise::gguf
