#include <poise/sampling_defaults.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "syntax/element_value.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

// Names a key of a sampling method that Sampler lacks, and the value that switches the method off.
struct UnknownKey {
  std::string_view key;
  double neutral;
};

struct SamplingKeys {
  std::string_view source;
  std::string_view temperature;
  std::string_view top_k;
  std::string_view top_p;
  std::string_view min_p;
  std::string_view repetition_penalty;
  std::span<const UnknownKey> unknown;
};

constexpr UnknownKey kUnknownOfGeneration[] = {{"typical_p", 1},  {"epsilon_cutoff", 0},
                                               {"eta_cutoff", 0}, {"no_repeat_ngram_size", 0},
                                               {"num_beams", 1},  {"penalty_alpha", 0}};
constexpr SamplingKeys kGenerationKeys = {
    .source = "generation_config.json",
    .temperature = "temperature",
    .top_k = "top_k",
    .top_p = "top_p",
    .min_p = "min_p",
    .repetition_penalty = "repetition_penalty",
    .unknown = kUnknownOfGeneration,
};

constexpr UnknownKey kUnknownOfGguf[] = {{"general.sampling.xtc_probability", 0}, {"general.sampling.mirostat", 0}};
constexpr SamplingKeys kGgufKeys = {
    .source = "general.sampling.*",
    .temperature = "general.sampling.temp",
    .top_k = "general.sampling.top_k",
    .top_p = "general.sampling.top_p",
    .min_p = "general.sampling.min_p",
    .repetition_penalty = "general.sampling.penalty_repeat",
    .unknown = kUnknownOfGguf,
};

class DefaultsReader {
 public:
  DefaultsReader(const Attributes& from, const SamplingKeys& keys) : from_(from), keys_(keys) {}

  SamplingDefaults read() {
    result_.temperature = read_valid_number<float>(keys_.temperature, &SamplingOptions::temperature);
    result_.top_k = read_valid_number<std::int64_t>(keys_.top_k, &SamplingOptions::top_k);
    result_.top_p = read_valid_number<float>(keys_.top_p, &SamplingOptions::top_p);
    result_.min_p = read_valid_number<float>(keys_.min_p, &SamplingOptions::min_p);
    result_.repetition_penalty =
        read_valid_number<float>(keys_.repetition_penalty, &SamplingOptions::repetition_penalty);
    for (const auto& [key, neutral] : keys_.unknown) {
      const Value* const value = from_.find(key);
      const bool is_set = value != nullptr && *value != Value();
      if (is_set && convert_to_double(value) != neutral) add_ignored(key, *value);
    }
    const bool has_any = result_.temperature || result_.top_k || result_.top_p || result_.min_p ||
                         result_.repetition_penalty || !result_.ignored.empty();
    if (has_any) result_.source = keys_.source;
    return std::move(result_);
  }

 private:
  void add_ignored(std::string_view key, const Value& value) {
    result_.ignored.push_back(fmt::format("{} {}", key, to_json(value)));
  }

  // Returns the number of a key; std::nullopt if the key is absent or null. If the value is not a `Number`, or Sampler
  // rejects it, lists the key as ignored and returns std::nullopt.
  template <typename Number>
  std::optional<Number> read_valid_number(std::string_view key, Number SamplingOptions::*field) {
    const Value* const value = from_.find(key);
    if (value == nullptr || *value == Value()) return std::nullopt;
    const auto stated = convert_to_double(value);
    constexpr auto kMost = static_cast<double>(std::numeric_limits<std::int32_t>::max());
    const bool is_whole = stated && std::abs(*stated) <= kMost && std::trunc(*stated) == *stated;
    if (stated && std::isfinite(*stated) && (std::floating_point<Number> || is_whole)) {
      SamplingOptions options;
      options.*field = static_cast<Number>(*stated);
      try {
        (void)Sampler(options);
        return options.*field;
      } catch (const Error&) {
      }
    }
    add_ignored(key, *value);
    return std::nullopt;
  }

  const Attributes& from_;
  const SamplingKeys& keys_;
  SamplingDefaults result_;
};

}  // namespace

SamplingDefaults read_sampling_defaults(const Model& model) {
  constexpr float kAsTrained = 1;
  const Attributes generation = read_generation_config(model);
  if (!generation.empty()) {
    SamplingDefaults result = DefaultsReader(generation, kGenerationKeys).read();
    const Value* const samples = generation.find("do_sample");
    if (samples == nullptr || *samples != Value(true)) {
      result.temperature.reset();
      result.top_k.reset();
      result.top_p.reset();
      result.min_p.reset();
    } else {
      constexpr std::int64_t kUsualTopK = 50;
      result.source = kGenerationKeys.source;
      if (!result.temperature) result.temperature = kAsTrained;
      if (!result.top_k) result.top_k = kUsualTopK;
    }
    if (!result.source.empty()) return result;
  }
  SamplingDefaults result = DefaultsReader(model.attributes, kGgufKeys).read();
  const bool samples = result.top_k || result.top_p || result.min_p;
  if (samples && !result.temperature) result.temperature = kAsTrained;
  return result;
}

SamplingOptions apply_sampling_defaults(const SamplingDefaults& defaults, SamplingOptions options) {
  const auto apply = [](const auto& stated, auto& value) {
    if (stated) value = *stated;
  };
  apply(defaults.temperature, options.temperature);
  apply(defaults.top_k, options.top_k);
  apply(defaults.top_p, options.top_p);
  apply(defaults.min_p, options.min_p);
  apply(defaults.repetition_penalty, options.repetition_penalty);
  return options;
}

}  // namespace poise
