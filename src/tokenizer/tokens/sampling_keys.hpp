// Lists the keys with which GGUF's metadata and generation_config.json state how to sample.
#pragma once

#include <array>
#include <string_view>

namespace poise {

struct SamplingKey {
  enum class Kind { text, integer, number };
  std::string_view gguf;    // the key after "general.sampling."
  std::string_view config;  // the key in generation_config.json; llama.cpp's name if transformers has none
  Kind kind;
};

inline constexpr std::string_view kSamplingPrefix = "general.sampling.";

// llama.cpp's converter reads the same keys.
inline constexpr std::array kSamplingKeys = std::to_array<SamplingKey>({
    {"sequence", "sequence", SamplingKey::Kind::text},
    {"top_k", "top_k", SamplingKey::Kind::integer},
    {"top_p", "top_p", SamplingKey::Kind::number},
    {"min_p", "min_p", SamplingKey::Kind::number},
    {"xtc_probability", "xtc_probability", SamplingKey::Kind::number},
    {"xtc_threshold", "xtc_threshold", SamplingKey::Kind::number},
    {"temp", "temperature", SamplingKey::Kind::number},
    {"penalty_last_n", "penalty_last_n", SamplingKey::Kind::integer},
    {"penalty_repeat", "repetition_penalty", SamplingKey::Kind::number},
    {"mirostat", "mirostat", SamplingKey::Kind::integer},
    {"mirostat_tau", "mirostat_tau", SamplingKey::Kind::number},
    {"mirostat_eta", "mirostat_eta", SamplingKey::Kind::number},
});

}  // namespace poise
