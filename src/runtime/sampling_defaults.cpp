#include <poise/sampling_defaults.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "syntax/element_value.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

// Names a key of a method that Poise lacks, and the number that switches the method off. null, false, and empty lists
// and objects do so for any key.
struct UnknownKey {
  std::string_view key;
  double neutral;
  bool only_when_sampling = false;  // the key changes no text at temperature 0
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

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // no number switches the method off

// The keys of transformers' GenerationConfig that change a text, except its largest length and those that count
// only with others of this list.
constexpr UnknownKey kUnknownOfGeneration[] = {
    {"num_beams", 1},
    {"no_repeat_ngram_size", 0},
    {"penalty_alpha", 0},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"suppress_tokens", kNone},
    {"begin_suppress_tokens", kNone},
    {"bad_words_ids", kNone},
    {"sequence_bias", kNone},
    {"forced_eos_token_id", kNone},
    {"exponential_decay_length_penalty", kNone},
    {"guidance_scale", 1},
    {"watermarking_config", kNone},
    {"dola_layers", kNone},
    {"stop_strings", kNone},
    {"token_healing", kNone},
    {"typical_p", 1, true},
    {"epsilon_cutoff", 0, true},
    {"eta_cutoff", 0, true},
    {"top_h", kNone, true},
};
constexpr SamplingKeys kGenerationKeys = {
    .source = "generation_config.json",
    .temperature = "temperature",
    .top_k = "top_k",
    .top_p = "top_p",
    .min_p = "min_p",
    .repetition_penalty = "repetition_penalty",
    .unknown = kUnknownOfGeneration,
};

constexpr UnknownKey kUnknownOfGguf[] = {{"general.sampling.xtc_probability", 0},
                                         {"general.sampling.mirostat", 0, true}};
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
    for (const auto& [key, neutral, only_when_sampling] : keys_.unknown) {
      const Value* const value = from_.find(key);
      if (is_set(value) && convert_to_double(value) != neutral) add_ignored(key, *value, only_when_sampling);
    }
    const bool has_any = result_.temperature || result_.top_k || result_.top_p || result_.min_p ||
                         result_.repetition_penalty || !result_.ignored.empty() ||
                         !result_.ignored_when_sampling.empty();
    if (has_any) result_.source = keys_.source;
    return std::move(result_);
  }

 private:
  static bool is_set(const Value* value) {
    if (value == nullptr || *value == Value() || *value == Value(false)) return false;
    const auto* const list = value->get_if<Value::Array>();
    const auto* const object = value->get_if<Attributes>();
    return !(list != nullptr && list->empty()) && !(object != nullptr && object->empty());
  }

  void add_ignored(std::string_view key, const Value& value, bool only_when_sampling) {
    constexpr std::size_t kLongestValue = 60;
    auto& list = only_when_sampling ? result_.ignored_when_sampling : result_.ignored;
    list.push_back(fmt::format("{} {}", key, shorten(to_json(value), kLongestValue)));
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
    add_ignored(key, *value, key != keys_.repetition_penalty);
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
