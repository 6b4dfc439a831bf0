#include "family/config_effects.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "schemes/scheme.hpp"
#include "syntax/element_value.hpp"

namespace poise {
namespace {

// Returns true when a value, which is not null, does not change the computation. `config` is null if the model has
// none.
using Harmless = bool (*)(const Value& value, const Config* config);

bool is_number(const Value& value, double wanted) { return convert_to_double(&value) == wanted; }

bool is_null(const Value&, const Config*) { return false; }
bool is_false(const Value& value, const Config*) { return value == Value(false); }
bool is_true(const Value& value, const Config*) { return value == Value(true); }
bool is_zero(const Value& value, const Config*) { return is_number(value, 0); }
bool is_one(const Value& value, const Config*) { return is_number(value, 1); }
bool is_silu(const Value& value, const Config*) { return value == Value("silu") || value == Value("swish"); }
bool is_rope(const Value& value, const Config*) { return value == Value("rope") || value == Value("rotary"); }
bool is_head_dim(const Value& value, const Config* config) {
  return config != nullptr && is_number(value, static_cast<double>(config->head_dim));
}

bool has_window(const Config* config) { return config != nullptr && config->sliding_window > 0; }
bool is_windowless(const Value&, const Config* config) { return !has_window(config); }
bool is_window_used(const Value& value, const Config* config) { return value == Value(true) || !has_window(config); }

// Returns true for the original rotary embeddings, over the whole head. Returns false if nested objects describe kinds
// of layers, as in newer files.
bool is_default_rope(const Value& value, const Config*) {
  const auto* map = value.get_if<Attributes>();
  if (map == nullptr) return false;
  const bool is_typed = map->find("rope_type") != nullptr || map->find("type") != nullptr;
  return std::ranges::all_of(*map, [&](const Attributes::Entry& entry) {
    const auto& [key, inner] = entry;
    if (inner == Value()) return true;
    if (key == "factor" && !is_typed) return false;
    if (key == "rope_type" || key == "type") return inner == Value("default");
    if (key == "partial_rotary_factor") return is_number(inner, 1);
    return inner.get_if<Attributes>() == nullptr && key != "llama_4_scaling_beta" && key != "attn_factor";
  });
}

// Returns true when all layers are of the kind that the window implies: all with a window, or none.
bool is_one_kind_of_layer(const Value& value, const Config* config) {
  const auto* layers = value.get_if<Value::Array>();
  const Value expected(has_window(config) ? "sliding_attention" : "full_attention");
  return layers != nullptr && std::ranges::all_of(*layers, [&](const Value& layer) { return layer == expected; });
}

struct Effect {
  std::string_view key;
  Harmless harmless;
  std::string_view only;  // the harmless value, for messages; null is harmless for every key
  bool tensors = false;   // changes which tensors there are
};

constexpr std::string_view kHiddenAct = "hidden_act";
constexpr std::string_view kQuantization = "quantization_config";

constexpr std::array kEffects = std::to_array<Effect>({
    // the feed-forward network
    {kHiddenAct, is_silu, "\"silu\""},
    {"hidden_activation", is_silu, "\"silu\""},
    {"mlp_bias", is_false, "false"},
    {"num_experts", is_zero, "0", true},
    {"num_local_experts", is_zero, "0", true},
    {"n_routed_experts", is_zero, "0", true},
    // rotary embeddings
    {"partial_rotary_factor", is_one, "1"},
    {"rotary_pct", is_one, "1"},
    {"rope_pct", is_one, "1"},
    {"rope_scaling", is_default_rope, "the type \"default\""},
    {"rope_parameters", is_default_rope, "the type \"default\""},
    {"rope_interleave", is_false, "false"},
    {"rope_interleaved", is_false, "false"},
    {"rope_local_base_freq", is_null, "null"},
    {"no_rope_layers", is_null, "null"},
    {"no_rope_layer_interval", is_null, "null"},
    {"position_embedding_type", is_rope, "\"rope\""},
    {"alibi", is_false, "false"},
    // attention
    {"attention_bias", is_false, "false"},
    {"qkv_bias", is_false, "false"},
    {"use_qkv_bias", is_false, "false"},
    {"use_bias", is_false, "false"},
    {"qk_norm", is_false, "false"},
    {"use_qk_norm", is_false, "false"},
    {"qk_layernorm", is_false, "false"},
    {"clip_qkv", is_null, "null"},
    {"query_pre_attn_scalar", is_head_dim, "head_dim"},
    {"attention_multiplier", is_null, "null"},
    {"attn_logit_softcapping", is_null, "null"},
    {"attention_chunk_size", is_null, "null"},
    {"attn_temperature_tuning", is_false, "false"},
    {"llama_4_scaling_beta", is_null, "null"},
    {"use_bidirectional_attention", is_false, "false"},
    {"is_causal", is_true, "true"},
    {"scale_attn_weights", is_true, "true"},
    {"scale_attn_by_inverse_layer_idx", is_false, "false"},
    {"q_lora_rank", is_null, "null", true},
    {"kv_lora_rank", is_null, "null", true},
    // layers
    {"layer_types", is_one_kind_of_layer, "one type, which sliding_window agrees with,"},
    {"use_sliding_window", is_window_used, "true"},
    {"sliding_window_pattern", is_windowless, "null"},
    {"max_window_layers", is_windowless, "null"},
    {"use_parallel_residual", is_false, "false"},
    {"parallel_attn", is_false, "false"},
    {"add_cross_attention", is_false, "false"},
    {"is_encoder_decoder", is_false, "false"},
    // scales
    {"logit_scale", is_one, "1"},
    {"logits_scaling", is_one, "1"},
    {"final_logit_softcapping", is_null, "null"},
    {"embedding_multiplier", is_one, "1"},
    {"residual_multiplier", is_one, "1"},
    {"scale_embedding", is_false, "false"},
    {"scale_emb", is_one, "1"},
    {"scale_depth", is_null, "null"},
    {"dim_model_base", is_null, "null"},
    // how weights are stored
    {kQuantization, is_null, "null", true},
    {"quantization", is_null, "null", true},  // the key of MLX
    {"compression_config", is_null, "null", true},
});

std::string format_short_json(const Value& value) {
  constexpr std::size_t kLongest = 80;
  return shorten(to_json(value), kLongest);
}

template <typename Visit>
void visit_effects(const Model& model, Visit&& visit) {
  const Config* config = model.config ? &*model.config : nullptr;
  const Attributes& keys = find_family_keys(find_family_or_llama(model), model.config_json);
  for (const Effect& effect : kEffects) {
    const bool own = effect.key == kHiddenAct && config != nullptr;  // the only one of these keys in Config
    const std::optional<Value> act = own ? std::optional<Value>(config->hidden_act) : std::nullopt;
    const Value* value = own ? &*act : keys.find(effect.key);
    if (value == nullptr) value = model.config_json.find(effect.key);  // outside the object with the family's keys
    if (value != nullptr && !(*value == Value()) && !effect.harmless(*value, config)) visit(effect, *value, own);
  }
}

bool is_followed(const Effect& effect, const Model& model) {
  if (effect.key == kQuantization) return is_folded(model);
  const auto followed = find_family_or_llama(model).followed;
  return std::ranges::find(followed, effect.key) != followed.end();
}

std::string format_effect(const Effect& effect, const Value& value) {
  return fmt::format("{} is {}, only {} is supported", effect.key, format_short_json(value), effect.only);
}

// Returns the plan; std::nullopt if the family refuses the configuration.
std::optional<DecoderPlan> find_plan(const ConfigView& view, const Family& family) {
  if (!check_config(view, family).empty()) return std::nullopt;
  try {
    return family.plan(view);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Returns a sentence for each key whose value is harmless by itself, but without which the family computes something
// else, because its default differs. Requires: the model has no other effects outside Config.
std::vector<std::string> list_defaults_that_differ(const Model& model) {
  if (!model.config) return {};
  const Family& family = find_family_or_llama(model);
  const ConfigView view = make_config_view(model);
  const auto find_own_plan = [&](const ConfigView& keys) {
    std::optional<DecoderPlan> found = find_plan(keys, family);
    // The name of a tensor that the model lacks changes nothing.
    if (found && model.find(found->rope_divisors) == nullptr) found->rope_divisors = {};
    return found;
  };
  const std::optional<DecoderPlan> plan = find_own_plan(view);
  const auto is_same_with = [&](const Attributes& keys) {
    return find_own_plan({view.config, keys, view.experts}) == plan;
  };
  if (!plan || is_same_with({})) return {};
  Attributes needed;
  for (const Effect& effect : kEffects) {
    if (const Value* value = view.json.find(effect.key)) needed.set(std::string(effect.key), *value);
  }
  if (!is_same_with(needed)) return {fmt::format("without them, a {} model computes something else", family.title)};
  for (const Effect& effect : kEffects) {
    Attributes fewer = needed;
    if (fewer.erase(effect.key) && is_same_with(fewer)) needed = std::move(fewer);
  }
  std::vector<std::string> sentences;
  for (const auto& [key, value] : needed) {
    sentences.push_back(fmt::format("{} is {}, and a {} model without this key computes something else", key,
                                    format_short_json(value), family.title));
  }
  return sentences;
}

}  // namespace

std::optional<std::string> describe_other_text_model(const Model& model) {
  const Family& family = find_family_or_llama(model);
  const Attributes& keys = find_family_keys(family, model.config_json);
  const Value* type = &keys == &model.config_json ? nullptr : keys.find("model_type");
  if (type == nullptr || *type == Value() || *type == Value(family.text_type)) return std::nullopt;
  return fmt::format("{}'s model_type is {}, only \"{}\" is supported", family.nested, format_short_json(*type),
                     family.text_type);
}

std::vector<std::string> list_ignored_effects(const Model& model) {
  std::vector<std::string> result;
  if (auto other = describe_other_text_model(model)) result.push_back(*std::move(other));
  visit_effects(model, [&](const Effect& effect, const Value& value, bool) {
    if (!is_followed(effect, model)) result.push_back(format_effect(effect, value));
  });
  return result;
}

std::vector<std::string> list_effects_outside_config(const Model& model) {
  std::vector<std::string> result;
  if (auto other = describe_other_text_model(model)) result.push_back(*std::move(other));
  visit_effects(model, [&](const Effect& effect, const Value& value, bool own) {
    if (!own) result.push_back(format_effect(effect, value));
  });
  return result.empty() ? list_defaults_that_differ(model) : result;
}

bool has_other_tensors(const Model& model) {
  bool found = describe_other_text_model(model).has_value();
  visit_effects(model, [&](const Effect& effect, const Value&, bool) {
    found = found || (effect.tensors && !is_followed(effect, model));
  });
  return found;
}

}  // namespace poise
