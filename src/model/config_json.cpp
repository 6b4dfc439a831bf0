#include "model/config_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "model/tiny_llama.hpp"

namespace poise {
namespace {

// Typed look-ups in one JSON object; null counts as absent.
class Keys {
 public:
  Keys(const Attributes& map, const std::string& path) : map_(map), path_(path) {}

  std::optional<std::int64_t> integer(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = value->get_if<std::uint64_t>(); number != nullptr && *number <= INT32_MAX) return static_cast<std::int64_t>(*number);
    if (const auto* number = value->get_if<std::int64_t>(); number != nullptr && *number >= INT32_MIN) return *number;
    if (const auto* number = value->get_if<double>(); number != nullptr && *number == std::floor(*number) && std::abs(*number) <= INT32_MAX) {
      return static_cast<std::int64_t>(*number);
    }
    fail(key, "expected an integer of 32 bits");
  }
  std::optional<float> number(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* positive = value->get_if<std::uint64_t>()) return static_cast<float>(*positive);
    if (const auto* negative = value->get_if<std::int64_t>()) return static_cast<float>(*negative);
    const auto* fraction = value->get_if<double>();
    if (fraction == nullptr) fail(key, "expected a number");
    const auto narrowed = static_cast<float>(*fraction);
    if (!std::isfinite(narrowed)) fail(key, fmt::format("{} is no finite number of 32 bits", *fraction));
    return narrowed;
  }
  std::optional<bool> boolean(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* flag = value->get_if<bool>()) return *flag;
    fail(key, "expected true or false");
  }
  std::optional<std::string> text(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* found = value->get_if<std::string>()) return *found;
    fail(key, "expected text");
  }
  bool absent(std::string_view key) const { return map_.find(key) == nullptr; }
  const Attributes* object(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr) return nullptr;
    if (const auto* map = value->get_if<Attributes>()) return map;
    fail(key, "expected an object");
  }
  std::int64_t required(std::string_view key) const {
    const auto value = integer(key);
    if (!value) fail(key, "missing");
    return *value;
  }

  [[noreturn]] void fail(std::string_view key, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("config: {}: {}", key, problem), path_);
  }

 private:
  const Value* find(std::string_view key) const {
    const Value* value = map_.find(key);
    return value == nullptr || value->get_if<std::nullptr_t>() != nullptr ? nullptr : value;
  }

  const Attributes& map_;
  const std::string& path_;
};

constexpr std::array<std::string_view, 2> kRopeObjects = {"rope_parameters", "rope_scaling"};

// rope_theta, which newer files keep in an object of its own.
float rope_theta(const Keys& keys, const std::string& path) {
  float theta = keys.number("rope_theta").value_or(10000.0F);
  for (const std::string_view key : kRopeObjects) {
    if (const Attributes* map = keys.object(key)) theta = Keys(*map, path).number("rope_theta").value_or(theta);
  }
  return theta;
}

Config read_tiny_llama(const Keys& keys) {
  Config config = tiny_llama_config({.model_dim = keys.required("hidden_size"),
                                     .layers = keys.required("num_hidden_layers"),
                                     .heads = keys.required("num_attention_heads"),
                                     .ffn_hidden_dim = keys.required("intermediate_size"),
                                     .positions = keys.required("max_position_embeddings"),
                                     .vocabulary = keys.required("vocab_size"),
                                     .dropout = keys.number("dropout").value_or(0.0F)});
  config.hidden_act = keys.text("hidden_act").value_or(config.hidden_act);
  config.rms_norm_eps = keys.number("rms_norm_eps").value_or(config.rms_norm_eps);
  config.rope_theta = keys.number("rope_theta").value_or(config.rope_theta);
  config.initializer_range = keys.number("initializer_range").value_or(config.initializer_range);
  return config;
}

// The hyperparameters that a config.json says, in our spelling; none where it does not say them.
Attributes hyperparameters_of(const Attributes& map, std::string model_type) {
  try {
    const Config config = config_from_attributes(map, model_type, {});
    return config_to_attributes(config, model_type);
  } catch (const Error&) {
    return {};
  }
}

// Poise itself writes a Config of any family, with every key. Nothing is to be guessed then.
std::optional<Config> spelled_by_poise(const Attributes& map, std::string model_type) {
  if (map.empty() || !(hyperparameters_of(map, model_type) == map)) return std::nullopt;
  return config_from_attributes(map, model_type, {});
}

// In the objects that count more than the key beside them.
void set_rope_theta(Attributes& map, const Value& theta) {
  for (const std::string_view key : kRopeObjects) {
    const Value* value = map.find(key);
    const auto* found = value == nullptr ? nullptr : value->get_if<Attributes>();
    if (found == nullptr || found->find("rope_theta") == nullptr) continue;
    Attributes changed = *found;
    changed.set("rope_theta", theta);
    map.set(std::string(key), std::move(changed));
  }
}

}  // namespace

Config config_from_attributes(const Attributes& map, std::string& model_type, const std::string& path) {
  const Keys keys(map, path);
  model_type = keys.text("model_type").value_or(model_type);
  if (model_type == kTinyLlama) return read_tiny_llama(keys);
  const bool mistral = model_type == "mistral";
  Config config;
  config.hidden_act = keys.text("hidden_act").value_or("silu");
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings").value_or(false);
  config.hidden_size = keys.required("hidden_size");
  config.intermediate_size = keys.required("intermediate_size");
  config.max_position_embeddings = keys.integer("max_position_embeddings").value_or(mistral ? 32768 : 2048);
  config.num_attention_heads = keys.required("num_attention_heads");
  config.num_hidden_layers = keys.required("num_hidden_layers");
  config.num_key_value_heads = keys.integer("num_key_value_heads").value_or(config.num_attention_heads);
  config.vocab_size = keys.integer("vocab_size").value_or(0);
  config.sliding_window = std::max<std::int64_t>(0, keys.integer("sliding_window").value_or(0));
  if (mistral && keys.absent("sliding_window")) config.sliding_window = 4096;  // null means none; only absence means the default
  config.rope_theta = rope_theta(keys, path);
  config.rms_norm_eps = keys.number("rms_norm_eps").value_or(mistral ? 1e-5F : 1e-6F);
  config.initializer_range = keys.number("initializer_range").value_or(0.02F);
  const std::int64_t heads = config.num_attention_heads;
  config.head_dim = keys.integer("head_dim").value_or(heads > 0 ? config.hidden_size / heads : 0);
  return config;
}

bool is_known_family(std::string_view model_type) { return model_type == "mistral" || model_type == "llama" || model_type == kTinyLlama; }

void take_config(Model& model, Attributes map, const std::string& path) {
  std::string& model_type = model.card.model_type;
  model_type = Keys(map, path).text("model_type").value_or(model_type);
  const bool llama = model_type.empty() && map.find("hidden_size") != nullptr;
  model.config = is_known_family(model_type) || llama ? config_from_attributes(map, model_type, path) : spelled_by_poise(map, model_type);
  model.config_json = std::move(map);
}

Attributes normal_config(const Model& model) {
  const Attributes typed = model.config ? config_to_attributes(*model.config, model.card.model_type) : Attributes();
  std::vector<Attributes::Entry> entries(typed.begin(), typed.end());
  for (const auto& [key, value] : model.config_json) {
    if (typed.find(key) == nullptr) entries.emplace_back(key, value);
  }
  return Attributes::from_unique(std::move(entries));
}

std::vector<std::string> other_config_keys(const Model& model) {
  const Attributes typed = config_to_attributes(Config{}, std::string(kTinyLlama));  // the family with the most keys
  std::vector<std::string> keys;
  for (const auto& [key, value] : model.config_json) {
    if (!model.config || typed.find(key) == nullptr) keys.push_back(key);
  }
  return keys;
}

Attributes whole_config(const Model& model) {
  if (!model.config) return model.config_json;
  const Attributes typed = config_to_attributes(*model.config, model.card.model_type);
  if (other_config_keys(model).empty()) return typed;
  Attributes whole = model.config_json;
  const Attributes said = hyperparameters_of(whole, model.card.model_type);
  for (const auto& [key, value] : typed) {
    const Value* before = said.find(key);
    if (before != nullptr && *before == value && whole.find(key) != nullptr) continue;
    const bool changed = before != nullptr && !(*before == value);
    whole.set(key, value);
    if (changed && key == "rope_theta") set_rope_theta(whole, value);
  }
  return whole;
}

}  // namespace poise
