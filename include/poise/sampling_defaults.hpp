// sampling_defaults: reads the sampling options that a model's files recommend.
//
//   const auto options = poise::apply_sampling_defaults(poise::read_sampling_defaults(model));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/sampler.hpp>

namespace poise {

// Holds the options that a model's files state or imply, as far as Sampler accepts them.
struct SamplingDefaults {
  std::string source;  // "generation_config.json", or "general.sampling.*", keys of GGUF; empty: the files state none
  std::optional<float> temperature = {};
  std::optional<std::int64_t> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  // Stated, but out of range, or not known to Poise: "num_beams 4". The second list has those that count only if the
  // temperature is above 0: "typical_p 0.9".
  std::vector<std::string> ignored = {};
  std::vector<std::string> ignored_when_sampling = {};
};

// Reads the defaults. A generation_config.json means the same as in transformers: if do_sample is true, an absent
// temperature is 1, and an absent top_k is 50. Otherwise temperature, top_k, top_p and min_p stay empty, because the
// best token is chosen. In a GGUF file the keys general.sampling.* mean the same as in llama.cpp: if top_k, top_p or
// min_p is stated, an absent temperature is 1.
SamplingDefaults read_sampling_defaults(const Model& model);

// Returns `options` with the values that the defaults state.
SamplingOptions apply_sampling_defaults(const SamplingDefaults& defaults, SamplingOptions options = {});

}  // namespace poise
