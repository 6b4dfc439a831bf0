#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "family/rope.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/key_values.hpp"
#include "numeric/float_formats.hpp"
#include "syntax/element_value.hpp"

namespace poise::gguf {
namespace {

// Moves hyperparameters from a file's entries to keys of config.json.
class HyperparameterReader {
 public:
  HyperparameterReader(Entries& entries, const Architecture& architecture, const Model& model)
      : entries_(entries), architecture_(architecture), model_(model) {}

  Attributes read(const RopeFactors& factors) {
    map_.set("model_type", architecture_.model_type);
    map_.set("tie_word_embeddings", model_.size() > 0 && model_.find("lm_head.weight") == nullptr);
    for (const KeyRow& row : list_key_rows(architecture_)) {
      if (auto value = remove(row)) map_.set(std::string(row.config), std::move(*value));
    }
    for (const KeyRow& row : architecture_.keys) {
      const Value* same = row.left_out_if_same.empty() ? nullptr : map_.find(row.left_out_if_same);
      const Value* found = map_.find(row.config);
      if (same != nullptr && found != nullptr && *found == *same) map_.erase(row.config);
      const Value* by_default = row.read_by_default.empty() ? nullptr : map_.find(row.read_by_default);
      if (by_default != nullptr && map_.find(row.config) == nullptr) map_.set(std::string(row.config), *by_default);
    }
    if (map_.find("vocab_size") == nullptr) {
      const Tensor* embedding = model_.find(find_poise_name(architecture_, kEmbedding)->name);
      if (embedding != nullptr && !embedding->shape.empty()) map_.set("vocab_size", embedding->shape.front());
    }
    // A missing window means llama.cpp's default, if it has one; transformers has other defaults. 0 means no window,
    // which is null in config.json.
    if (map_.find("sliding_window") == nullptr && architecture_.window_period > 0)
      map_.set("sliding_window", architecture_.usual_window);
    if (const Value* found = map_.find("sliding_window"); found != nullptr && *found == Value(0))
      map_.set("sliding_window", Value());
    for (const FixedKey& fixed : architecture_.fixed) {
      if (fixed.is_explicit) map_.set(std::string(fixed.config), make_fixed_value(fixed));
    }
    for (const ImpliedFlag& flag : architecture_.implied_flags) {
      if (model_.find(fmt::format("{}0.{}", architecture_.layers, flag.tensor)) != nullptr)
        map_.set(std::string(flag.config), true);
    }
    if (const Value* causal = entries_.find(make_key(kCausal)); causal != nullptr && *causal == Value(false)) {
      map_.set("is_causal", false);
      entries_.remove(make_key(kCausal));
    }
    read_head_sizes();
    read_windows();
    read_rope_scaling(factors);
    return std::move(map_);
  }

 private:
  std::string make_key(std::string_view gguf) const { return fmt::format("{}.{}", architecture_.name, gguf); }

  // Removes an entry and returns its value. Returns std::nullopt for a missing key, and for a value of another kind,
  // such as a list with a number for each layer, which stays an attribute.
  std::optional<Value> remove(const KeyRow& row) {
    const Value* value = entries_.find(make_key(row.gguf));
    if (value == nullptr || !has_kind(*value, row.kind)) return std::nullopt;
    return entries_.remove(make_key(row.gguf));
  }

  std::uint64_t find_head_length() const {
    if (map_.find("head_dim") != nullptr) return get_integer(map_.find("head_dim"));
    const std::uint64_t heads = get_integer(map_.find("num_attention_heads"));
    return heads == 0 ? 0 : get_integer(map_.find("hidden_size")) / heads;
  }

  void read_head_sizes() {
    const std::uint64_t head = find_head_length();
    if (head == 0) return;
    const std::uint64_t rotating = entries_.find_number(make_key(kRotating));
    if (rotating > 0) {
      if (rotating != head)
        map_.set("partial_rotary_factor", static_cast<double>(rotating) / static_cast<double>(head));
      entries_.remove(make_key(kRotating));
    }
    // llama.cpp has a second head length, which is that of the values. transformers has only one, so a different length
    // stays an attribute.
    if (entries_.find_number(make_key("attention.value_length")) == head)
      entries_.remove(make_key("attention.value_length"));
    if (architecture_.wide_scale_layers == 0) return;
    const bool wide = get_integer(map_.find("num_hidden_layers")) == architecture_.wide_scale_layers;
    const std::uint64_t heads = get_integer(map_.find("num_attention_heads"));
    map_.set("query_pre_attn_scalar", wide && heads > 0 ? get_integer(map_.find("hidden_size")) / heads : head);
  }

  void read_windows() {
    const bool may_lack_window = architecture_.window_period > 0 && architecture_.usual_window == 0 &&
                                 !architecture_.needs_window && !architecture_.explicit_windows;
    if (may_lack_window && get_integer(map_.find("sliding_window")) == 0) return add_full_layers();
    const Value* pattern = entries_.find(make_key(kPattern));
    const std::uint64_t layers = get_integer(map_.find("num_hidden_layers"));
    const Value usual = architecture_.window_period;
    if (pattern == nullptr && architecture_.explicit_windows && get_integer(map_.find("sliding_window")) > 0)
      pattern = &usual;
    if (pattern == nullptr || architecture_.window_period == 0 || layers > kMaxPatternLayers) return;
    Value::Array types;
    const auto add = [&](bool slides) { types.emplace_back(slides ? kSliding : kFull); };
    if (const auto* list = pattern->get_if<Value::Array>()) {
      if (list->size() != layers) return;
      for (const Value& slides : *list) add(slides == Value(true) || slides == Value(1));
    } else if (const std::uint64_t period = get_integer(pattern); period > 0) {
      for (std::uint64_t i = 0; i < layers; ++i) add(i % period + 1 < period);
    } else {
      return;
    }
    map_.set("layer_types", std::move(types));
    entries_.remove(make_key(kPattern));
  }

  // Without a window, llama.cpp computes all layers alike, and ignores the pattern.
  void add_full_layers() {
    const std::uint64_t layers = get_integer(map_.find("num_hidden_layers"));
    if (layers <= kMaxPatternLayers) map_.set("layer_types", Value::Array(layers, Value(kFull)));
  }

  void read_rope_scaling(const RopeFactors& factors) {
    const std::string name = find_scaling_type(entries_, architecture_);
    // With the type none, llama.cpp ignores the factor, so both stay attributes.
    if (name != "none") entries_.remove(make_key("rope.scaling.type"));
    std::optional<Attributes> scaling;
    if (!factors.long_contexts.empty() && !factors.short_contexts.empty()) {
      scaling = name == "none" ? read_longrope(factors) : read_longrope(divide_further(factors));
    } else if (name != "none") {
      scaling = Attributes{{"rope_type", name}};
      for (const KeyRow& row : kScalingKeys) {
        if (auto value = remove(row)) scaling->set(std::string(row.config), std::move(*value));
      }
      if (scaling->find("factor") == nullptr) {
        if (auto value = remove({kOldFactor, "factor", KeyRow::Kind::number}))
          scaling->set("factor", std::move(*value));
      }
      if (scaling->find("factor") == nullptr) scaling->set("factor", 1.0);  // as in llama.cpp
      if (name == "yarn") read_yarn_attention(*scaling);
      if (name == "yarn" && architecture_.scales_yarn_by_log) read_yarn_log_multiplier(*scaling);
    }
    if (!factors.every.empty() && !scaling) {
      scaling = find_equivalent_scaling(factors.every, convert_to_double(map_.find("rope_theta")).value_or(kUsualTheta),
                                        get_integer(map_.find("max_position_embeddings")));
    }
    // llama.cpp multiplies rotated queries and keys by this factor, for every type of scaling. transformers has no such
    // key, and Poise does not run models that have it.
    const auto attention = convert_to_double(entries_.find(make_key(kAttentionFactor)));
    if (architecture_.rotates && attention && *attention != 1) {
      if (!scaling) scaling = Attributes{{"rope_type", "default"}};
      scaling->set(std::string(kPlainFactor), *remove({kAttentionFactor, {}, KeyRow::Kind::number}));
    }
    if (scaling) map_.set("rope_scaling", std::move(*scaling));
  }

  void read_yarn_log_multiplier(Attributes& scaling) {
    const auto multiplier = remove({kYarnLog, {}, KeyRow::Kind::number});
    if (!multiplier || *multiplier == Value(0.0)) return;
    scaling.set("mscale", 1.0);
    scaling.set("mscale_all_dim", *multiplier);
  }

  // Reads yarn's attention factor: llama.cpp multiplies rope.scaling.attn_factor by the factor that yarn computes.
  void read_yarn_attention(Attributes& scaling) {
    const auto said = remove({kAttentionFactor, {}, KeyRow::Kind::number});
    if (!said) return;
    const double attention =
        *said->get_if<double>() * compute_yarn_attention(convert_to_double(scaling.find("factor")).value_or(1));
    const double configured = convert_to_double(scaling.find("attention_factor")).value_or(0);
    if (std::abs(attention - configured) > kClose)
      scaling.set("attention_factor", convert_by_spelling(static_cast<float>(attention)));
  }

  // llama.cpp divides the frequencies by rope.scaling.factor, too; transformers gives the factor of longrope another
  // meaning.
  RopeFactors divide_further(RopeFactors factors) {
    auto said = remove({"rope.scaling.factor", {}, KeyRow::Kind::number});
    if (!said) said = remove({kOldFactor, {}, KeyRow::Kind::number});
    const double factor = said ? *said->get_if<double>() : 1;
    if (factor == 0 || factor == 1) return factors;
    for (auto* list : {&factors.long_contexts, &factors.short_contexts}) {
      for (float& number : *list) number = static_cast<float>(number * factor);
    }
    return factors;
  }

  Attributes read_longrope(const RopeFactors& factors) {
    Attributes scaling{{"rope_type", "longrope"},
                       {"long_factor", make_float_list(factors.long_contexts)},
                       {"short_factor", make_float_list(factors.short_contexts)}};
    if (auto length = remove({kOriginalLength, {}}))
      scaling.set("original_max_position_embeddings", std::move(*length));
    const Value* top_level = map_.find("original_max_position_embeddings");
    const std::uint64_t original =
        get_integer(top_level != nullptr ? top_level : scaling.find("original_max_position_embeddings"));
    // llama.cpp's default factor is 1.
    const auto said = remove({kAttentionFactor, {}, KeyRow::Kind::number});
    const double factor = said ? *said->get_if<double>() : 1.0;
    const double computed = original == 0 ? 1.0
                                          : compute_longrope_attention(
                                                static_cast<double>(get_integer(map_.find("max_position_embeddings"))),
                                                static_cast<double>(original));
    if (std::abs(factor - computed) > kClose) scaling.set("attention_factor", factor);
    return scaling;
  }

  static constexpr double kUsualTheta = 10000;

  Entries& entries_;
  const Architecture& architecture_;
  const Model& model_;
  Attributes map_;
};

}  // namespace

const Architecture* find_file_architecture(const Entries& entries, std::string_view name) {
  return find_named_architecture(name, entries.find_number(fmt::format("{}.expert_count", name)) > 0);
}

std::string find_scaling_type(const Entries& entries, const Architecture& architecture) {
  const auto make_key = [&](std::string_view gguf) { return fmt::format("{}.{}", architecture.name, gguf); };
  const Value* type = entries.find(make_key("rope.scaling.type"));
  if (const auto* named = type == nullptr ? nullptr : type->get_if<std::string>()) return *named;
  // In llama.cpp, a factor without a type means linear scaling, and a factor of 0 means none.
  const double factor = convert_to_double(entries.find(make_key("rope.scaling.factor")))
                            .value_or(convert_to_double(entries.find(make_key(kOldFactor))).value_or(0));
  return type == nullptr && architecture.rotates && factor != 0 && factor != 1 ? "linear" : "none";
}

Heads read_heads(const Entries& entries, const Architecture& architecture) {
  const std::uint64_t queries = entries.find_number(fmt::format("{}.attention.head_count", architecture.name));
  const std::uint64_t keys = entries.find_number(fmt::format("{}.attention.head_count_kv", architecture.name));
  return {queries, keys != 0 ? keys : queries};
}

std::optional<std::string> explain_unreadable_hyperparameter(const Entries& entries, const Architecture& architecture) {
  for (const KeyRow& row : list_key_rows(architecture)) {
    const std::string key = fmt::format("{}.{}", architecture.name, row.gguf);
    const Value* value = entries.find(key);
    if (value == nullptr || has_kind(*value, row.kind)) continue;
    return fmt::format("{}: expected {}, found {}", key,
                       row.kind == KeyRow::Kind::integer ? "an integer of 0 or more" : "a number",
                       to_string(KeyValues::choose_type(*value)));
  }
  for (const std::string_view required : kRequired) {
    const std::string key = fmt::format("{}.{}", architecture.name, required);
    if (entries.find(key) == nullptr) return fmt::format("{} is missing", key);
  }
  return std::nullopt;
}

Attributes extract_config(Entries& entries, const Architecture& architecture, const Model& model,
                          const RopeFactors& factors) {
  return HyperparameterReader(entries, architecture, model).read(factors);
}

namespace {

bool are_close(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4F * std::abs(y); });
}

}  // namespace

std::vector<float> compute_llama3_factors(const Attributes& scaling, double theta, std::uint64_t rotating) {
  const auto factor = convert_to_double(scaling.find("factor"));
  const auto low = convert_to_double(scaling.find("low_freq_factor"));
  const auto high = convert_to_double(scaling.find("high_freq_factor"));
  const auto original = convert_to_double(scaling.find("original_max_position_embeddings"));
  if (!factor || !low || !high || !original || *factor <= 0 || *low <= 0 || *high <= *low || *original <= 0 ||
      theta <= 0)
    return {};
  std::vector<float> factors;
  for (std::uint64_t i = 0; i + 1 < rotating; i += 2) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(rotating));
    // `turns` is the number of turns within the original context; `low` and `high` are its limits for long and short
    // waves.
    const double turns = *original / wave;
    const double smooth = std::clamp((turns - *low) / (*high - *low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / *factor + smooth)));
  }
  return factors;
}

std::optional<Attributes> find_equivalent_scaling(const std::vector<float>& factors, double theta,
                                                  std::uint64_t positions) {
  if (factors.empty() || std::ranges::all_of(factors, [](float factor) { return factor == 1.0F; })) return std::nullopt;
  const Attributes llama3{{"rope_type", "llama3"},
                          {"factor", convert_by_spelling(factors.back())},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192}};
  if (are_close(compute_llama3_factors(llama3, theta, factors.size() * 2), factors)) return llama3;
  return Attributes{{"rope_type", "longrope"},
                    {"long_factor", make_float_list(factors)},
                    {"short_factor", make_float_list(factors)},
                    {"attention_factor", 1.0},
                    {"original_max_position_embeddings", positions}};
}

double compute_longrope_attention(double positions, double original) {
  const double scale = positions / original;
  return scale <= 1 || original <= 1 ? 1.0 : std::sqrt(1 + std::log(scale) / std::log(original));
}

Value make_float_list(const std::vector<float>& numbers) {
  Value::Array list;
  for (const float factor : numbers) list.emplace_back(convert_by_spelling(factor));
  return list;
}

std::vector<float> parse_float_list(const Value* list) {
  const auto* items = list == nullptr ? nullptr : list->get_if<Value::Array>();
  if (items == nullptr) return {};
  std::vector<float> floats;
  for (const Value& item : *items) {
    const auto factor = convert_to_double(&item);
    if (!factor) return {};
    floats.push_back(static_cast<float>(*factor));
  }
  return floats;
}

}  // namespace poise::gguf
