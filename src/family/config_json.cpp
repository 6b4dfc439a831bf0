#include "family/config_json.hpp"

#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/config_view.hpp"
#include "family/families.hpp"
#include "numeric/float_formats.hpp"
#include "syntax/element_value.hpp"

namespace poise {
namespace {

// Returns the hyperparameters of a config.json, with defaults, under canonical names; empty if they are not valid.
Attributes read_hyperparameters(const Attributes& map, std::string model_type) {
  try {
    const Config config = read_config_attributes(map, model_type, {});
    return config_to_attributes(config, model_type);
  } catch (const Error&) {
    return {};
  }
}

// Returns the configuration if Poise wrote it. Poise writes every key of a Config, so the family need not be known.
std::optional<Config> read_own_config(const Attributes& map, std::string model_type) {
  if (map.empty() || !(read_hyperparameters(map, model_type) == map)) return std::nullopt;
  return read_config_attributes(map, model_type, {});
}

// Sets rope_theta in the nested objects that take precedence over the top-level key.
void set_rope_theta(Attributes& map, const Value& theta) {
  for (const std::string_view key : kRopeObjects) {
    const auto* found = map.get_if<Attributes>(key);
    if (found == nullptr || found->find("rope_theta") == nullptr) continue;
    Attributes changed = *found;
    changed.set("rope_theta", theta);
    map.set(std::string(key), std::move(changed));
  }
}

}  // namespace

Attributes config_to_attributes(const Config& config, const std::string& model_type) {
  Attributes map;
  map.set("model_type", model_type);
  map.set("hidden_act", config.hidden_act);
  map.set("tie_word_embeddings", config.tie_word_embeddings);
  map.set("hidden_size", config.hidden_size);
  map.set("intermediate_size", config.intermediate_size);
  map.set("max_position_embeddings", config.max_position_embeddings);
  map.set("num_attention_heads", config.num_attention_heads);
  map.set("num_hidden_layers", config.num_hidden_layers);
  map.set("num_key_value_heads", config.num_key_value_heads);
  map.set("head_dim", config.head_dim);
  map.set("vocab_size", config.vocab_size);
  map.set("sliding_window", config.sliding_window > 0 ? Value(config.sliding_window) : Value());
  if (const std::string_view key = find_family_or_llama(model_type).window_switch;
      config.sliding_window > 0 && !key.empty())
    map.set(std::string(key), true);
  map.set("rope_theta", convert_by_spelling(config.rope_theta));
  map.set("rms_norm_eps", convert_by_spelling(config.rms_norm_eps));
  map.set("initializer_range", convert_by_spelling(config.initializer_range));
  if (config.dropout != 0.0F || find_family_or_llama(model_type).has_dropout)
    map.set("dropout", convert_by_spelling(config.dropout));
  return map;
}

Config read_config_attributes(const Attributes& map, std::string& model_type, const std::string& path) {
  const ConfigKeys keys(map, path);
  model_type = keys.read_text("model_type").value_or(model_type);
  const Family& family = find_family_or_llama(model_type);
  return family.read_config(ConfigKeys(find_family_keys(family, map), path));
}

void parse_config(Model& model, Attributes map, const std::string& path) {
  std::string model_type = ConfigKeys(map, path).read_text("model_type").value_or(model.card.model_type);
  const bool known = model_type.empty() ? map.find("hidden_size") != nullptr : find_family(model_type) != nullptr;
  model.config = known ? read_config_attributes(map, model_type, path) : read_own_config(map, model_type);
  model.card.model_type = std::move(model_type);
  model.config_json = std::move(map);
}

void set_model_type(Model& model, const std::string& model_type, const std::string& path) {
  const bool is_read = model.config && !model.card.model_type.empty();
  if (!is_read && !model.config_json.empty() && find_family(model_type) != nullptr) {
    Attributes map = whole_config(model);
    map.set("model_type", model_type);
    parse_config(model, std::move(map), path);
  }
  model.card.model_type = model_type;
}

void change_config(Model& model, const Attributes& changes, const std::string& path) {
  Attributes map = whole_config(model);
  for (const auto& [key, value] : changes) map.set(key, value);
  const auto* name = map.get_if<std::string>("model_type");
  const std::string nested(find_family_or_llama(name == nullptr ? model.card.model_type : *name).nested);
  const bool is_replaced = nested.empty() || changes.find(nested) != nullptr;
  const auto* beneath = is_replaced ? nullptr : map.get_if<Attributes>(nested);
  std::optional<Attributes> inner = beneath == nullptr ? std::nullopt : std::optional(*beneath);
  for (const auto& [key, value] : changes) {
    if (inner && inner->find(key) != nullptr) inner->set(key, value);
    if (key != "rope_theta") continue;
    set_rope_theta(map, value);
    if (inner) set_rope_theta(*inner, value);
  }
  if (inner) map.set(nested, *std::move(inner));
  parse_config(model, std::move(map), path);
}

Attributes make_canonical_config(const Model& model) {
  const Attributes typed = model.config ? config_to_attributes(*model.config, model.card.model_type) : Attributes();
  std::vector<Attributes::Entry> entries(typed.begin(), typed.end());
  for (const auto& [key, value] : model.config_json) {
    if (typed.find(key) == nullptr) entries.emplace_back(key, value);
  }
  return Attributes::from_unique(std::move(entries));
}

std::vector<std::string> list_other_config_keys(const Model& model) {
  Config all;
  all.dropout = 1;  // a dropout of 0 may have no key
  if (model.config)
    all.sliding_window = model.config->sliding_window;  // a window may imply a second key: window_switch
  const Attributes typed = config_to_attributes(all, model.card.model_type);
  std::vector<std::string> keys;
  for (const auto& [key, value] : model.config_json) {
    if (!model.config || typed.find(key) == nullptr) keys.push_back(key);
  }
  return keys;
}

Attributes whole_config(const Model& model) {
  if (!model.config) return model.config_json;
  const Attributes typed = config_to_attributes(*model.config, model.card.model_type);
  if (model.config_json.empty()) return typed;
  // Without a model_type, the defaults of Llama are a guess. A file with them could not become another family's.
  const bool has_defaults = !model.card.model_type.empty();
  Attributes whole = model.config_json;
  const Attributes said = read_hyperparameters(whole, model.card.model_type);
  for (const auto& [key, value] : typed) {
    const Value* before = said.find(key);
    const bool is_said = before != nullptr && *before == value;
    if (is_said && (!has_defaults || whole.find(key) != nullptr)) continue;
    const bool changed = before != nullptr && !is_said;
    whole.set(key, value);
    if (changed && key == "rope_theta") set_rope_theta(whole, value);
  }
  return whole;
}

std::optional<std::int64_t> ConfigKeys::read_integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->get_if<std::uint64_t>(); number != nullptr && *number <= INT32_MAX)
    return static_cast<std::int64_t>(*number);
  if (const auto* number = value->get_if<std::int64_t>(); number != nullptr && *number >= INT32_MIN) return *number;
  if (const auto* number = value->get_if<double>();
      number != nullptr && *number == std::floor(*number) && std::abs(*number) <= INT32_MAX) {
    return static_cast<std::int64_t>(*number);
  }
  fail(key, "expected an integer of 32 bits");
}

std::optional<float> ConfigKeys::read_number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto found = poise::convert_to_double(value);
  if (!found) fail(key, "expected a number");
  const auto narrowed = static_cast<float>(*found);
  if (!std::isfinite(narrowed)) fail(key, fmt::format("{} is not a finite number of 32 bits", *found));
  return narrowed;
}

std::int64_t ConfigKeys::require_integer(std::string_view key) const {
  const auto value = read_integer(key);
  if (!value) fail(key, "missing");
  return *value;
}

float ConfigKeys::read_rope_theta(float by_default) const {
  float theta = read_number("rope_theta").value_or(by_default);
  for (const std::string_view key : kRopeObjects) {
    if (const Attributes* map = find_object(key))
      theta = ConfigKeys(*map, path()).read_number("rope_theta").value_or(theta);
  }
  return theta;
}

std::vector<double> ConfigKeys::read_numbers(std::string_view key) const {
  std::vector<double> result;
  const Value::Array* items = find_array(key);
  if (items == nullptr) return result;
  result.reserve(items->size());
  for (const Value& item : *items) {
    const auto found = poise::convert_to_double(&item);
    if (!found) fail(key, "expected a list of numbers");
    result.push_back(*found);
  }
  return result;
}

}  // namespace poise
