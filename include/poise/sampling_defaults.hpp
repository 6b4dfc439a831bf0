// sampling_defaults: how a model's files ask for tokens to be chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/sampler.hpp>

namespace poise {

// Holds each value that the files state, in the range that Sampler accepts.
struct SamplingDefaults {
  std::string source;  // "generation_config.json", or "general.sampling.*", keys of GGUF; empty: the files state none
  std::optional<float> temperature = {};
  std::optional<std::int64_t> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  std::vector<std::string> ignored = {};  // stated, but out of range or not known to Sampler: "typical_p 0.9"
};

// Reads the defaults. generation_config.json decides as in transformers: without "do_sample": true it asks for the best
// token each time, and an absent temperature is 1, an absent top_k 50. Otherwise GGUF's keys general.sampling.*, as
// llama.cpp reads them: where any of temp, top_k, top_p and min_p is stated, an absent temperature is 1.
SamplingDefaults read_sampling_defaults(const Model& model);

// Returns `options` with the values that the defaults state.
SamplingOptions apply_sampling_defaults(const SamplingDefaults& defaults, SamplingOptions options = {});

}  // namespace poise
