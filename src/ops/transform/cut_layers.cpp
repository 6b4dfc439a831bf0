// This revision keeps some layers of a model, numbers them from 0, and changes the keys of the configuration that count
// or list layers.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/config_json.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "ops/transform/layer_list.hpp"
#include "ops/transform/revision.hpp"

namespace poise {
namespace {

// These keys have lists of ids or names, which never have an item for each layer.
constexpr std::array<std::string_view, 6> kOtherLists = {"architectures", "bos_token_id",    "eos_token_id",
                                                         "pad_token_id",  "suppress_tokens", "begin_suppress_tokens"};
// These keys have lists of layers' numbers.
constexpr std::array<std::string_view, 9> kNumberLists = {
    "mlp_only_layers",       "moe_layers",         "moe_layer_indices",      "full_attn_idxs", "attn_layer_indices",
    "full_attention_layers", "global_attn_layers", "cross_attention_layers", "dense_layers"};
// These keys have periods, offsets or numbers of layers, so the layers to which they apply depend on the numbering.
constexpr std::array<std::string_view, 15> kPositions = {
    "sliding_window_pattern",   "max_window_layers",         "no_rope_layer_interval",
    "decoder_sparse_step",      "first_k_dense_replace",     "moe_layer_freq",
    "full_attention_interval",  "attn_layer_period",         "attn_layer_offset",
    "expert_layer_period",      "expert_layer_offset",       "global_attn_every_n_layers",
    "cross_attention_interval", "interleave_moe_layer_step", "decoder_sparse_offset"};
// These keys count the last layers, so they apply to other layers if the last ones are cut.
constexpr std::array<std::string_view, 1> kLastLayers = {"num_kv_shared_layers"};

bool is_in(std::string_view key, const auto& keys) { return std::ranges::find(keys, key) != keys.end(); }

Value keep_layer_items(const Value::Array& items, const LayerCut& cut) {
  Value::Array kept;
  for (const std::uint64_t layer : cut.kept) kept.push_back(items[static_cast<std::size_t>(layer)]);
  return kept;
}

// Changes the keys that count or list layers, in a configuration or in an object of it.
class LayerKeyCut {
 public:
  explicit LayerKeyCut(const LayerCut& cut) : cut_(cut) {}

  Attributes change(const Attributes& config) {
    std::vector<Attributes::Entry> entries;
    for (const auto& [key, value] : config) entries.emplace_back(key, change(key, value));
    return Attributes::from_unique(std::move(entries));
  }

  const std::vector<std::string>& changed() const { return changed_; }

 private:
  Value change(const std::string& key, const Value& value) {
    const auto* items = value.get_if<Value::Array>();
    std::optional<Value> made;
    if (counts_layers(key, cut_.list) && value == Value(cut_.list.count)) {
      made = Value(static_cast<std::uint64_t>(cut_.kept.size()));
    } else if (items != nullptr && is_in(key, kNumberLists)) {
      made = renumber_items(*items);
    } else if (items != nullptr && items->size() == cut_.list.count && !is_in(key, kOtherLists)) {
      made = keep_layer_items(*items, cut_);
    }
    if (!made || *made == value) return value;
    changed_.push_back(key);
    return *std::move(made);
  }

  Value renumber_items(const Value::Array& items) const {
    Value::Array numbers;
    if (!cut_.is_ascending) {
      for (std::size_t i = 0; i < cut_.kept.size(); ++i) {
        if (std::ranges::find(items, Value(cut_.kept[i])) != items.end()) numbers.emplace_back(std::uint64_t{i});
      }
      return numbers;
    }
    for (const Value& item : items) {
      const auto* number = item.get_if<std::uint64_t>();
      if (number == nullptr) return items;
      if (const auto now = cut_.find_new_number(*number)) numbers.emplace_back(*now);
    }
    return numbers;
  }

  const LayerCut& cut_;
  std::vector<std::string> changed_;
};

// Renumbers the names of layers' modules in any value. The names of layers that are left out disappear from lists, and
// become null in maps.
std::optional<Value> rename_modules(const Value& value, const LayerCut& cut) {
  if (const auto* text = value.get_if<std::string>()) {
    const auto split = cut.list.split(*text);
    if (!split) return value;
    const auto number = cut.find_new_number(split->number);
    if (!number) return std::nullopt;
    return Value(fmt::format("{}{}{}", split->prefix, *number, split->rest));
  }
  if (const auto* items = value.get_if<Value::Array>()) {
    Value::Array made;
    for (const Value& item : *items) {
      if (auto renamed = rename_modules(item, cut)) made.push_back(*std::move(renamed));
    }
    return Value(std::move(made));
  }
  const auto* map = value.get_if<Attributes>();
  if (map == nullptr) return value;
  std::vector<Attributes::Entry> entries;
  for (const auto& [key, inner] : *map) entries.emplace_back(key, rename_modules(inner, cut).value_or(Value()));
  return Value(Attributes::from_unique(std::move(entries)));
}

// Describes a key of the configuration that states a property for each layer.
struct LayerKeys {
  std::string_view key;
  Value (*describe)(const std::vector<LayerPlan>& layers);
  std::string_view period = {};  // a key that is set to 1, so that `key` decides; empty: none
};

Value describe_windows(const std::vector<LayerPlan>& layers) {
  Value::Array types;
  for (const LayerPlan& layer : layers) types.emplace_back(layer.window > 0 ? "sliding_attention" : "full_attention");
  return types;
}

Value describe_rotation(const std::vector<LayerPlan>& layers) {
  Value::Array rotates;
  for (const LayerPlan& layer : layers) rotates.emplace_back(layer.rope ? 1 : 0);
  return rotates;
}

Value describe_layers_without_experts(const std::vector<LayerPlan>& layers) {
  Value::Array without;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].experts) without.emplace_back(static_cast<std::uint64_t>(i));
  }
  return without;
}

constexpr std::array kLayerKeys =
    std::to_array<LayerKeys>({{"layer_types", describe_windows},
                              {"no_rope_layers", describe_rotation},
                              {"mlp_only_layers", describe_layers_without_experts, "decoder_sparse_step"}});

std::optional<std::vector<LayerPlan>> plan_layers(const Model& model) {
  const auto plan = make_known_plan(model);
  return plan ? std::optional(plan->layers) : std::nullopt;
}

Attributes replace_object(Attributes config, const std::string& object, Attributes inner) {
  if (object.empty()) return inner;
  config.set(object, std::move(inner));
  return config;
}

// Adds keys that describe each layer, if the number of a layer decides how it computes: in Gemma 2, every second layer
// has a window. `wanted` has the plans of the layers that stay. Returns the added keys. Throws unsupported if no keys
// give these plans.
std::vector<std::string> add_layer_keys(Model& model, const LayerList& list, const std::vector<LayerPlan>& wanted,
                                        const std::string& path) {
  std::vector<std::string> added;
  if (plan_layers(model) == wanted) return added;
  Attributes changed = whole_config(model);
  for (const LayerKeys& row : kLayerKeys) {
    Attributes inner = find_layer_keys(changed, list);
    inner.set(std::string(row.key), row.describe(wanted));
    if (!row.period.empty()) inner.set(std::string(row.period), 1);
    Model tried(model.header());
    parse_config(tried, replace_object(changed, list.object, std::move(inner)), path);
    const auto was = plan_layers(model);
    const auto now = plan_layers(tried);
    if (!now || (was && *now == *was)) continue;
    added.emplace_back(row.key);
    changed = whole_config(tried);
    parse_config(model, changed, path);
    if (*now == wanted) return added;
  }
  throw Error(ErrorKind::unsupported,
              "layers: what a layer computes depends on its place in the model, and no key of the configuration can "
              "describe this for the layers that stay",
              path);
}

// Returns true if the last `count` layers are still the last ones, and the one before them, whose keys they share, is
// still there.
bool keeps_last_layers(const LayerCut& cut, std::uint64_t count) {
  if (count >= cut.kept.size()) return count == 0;
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (cut.kept[cut.kept.size() - i] + i != cut.list.count) return false;
  }
  return true;
}

void warn_of_positions(Model& model, const LayerCut& cut) {
  const bool is_beginning = cut.is_ascending && cut.kept.back() + 1 == cut.kept.size();
  std::vector<std::string> positions;
  std::vector<std::string> last;
  for (const auto& [key, value] : find_layer_keys(model.config_json, cut.list)) {
    if (value.get_if<Value::Array>() != nullptr || value == Value()) continue;
    if (is_in(key, kPositions) && !is_beginning) positions.push_back(key);
    const auto* count = value.get_if<std::uint64_t>();
    if (is_in(key, kLastLayers) && count != nullptr && !keeps_last_layers(cut, *count)) last.push_back(key);
  }
  const auto warn = [&](std::string_view text, const std::vector<std::string>& keys) {
    if (!keys.empty())
      model.warnings.push_back({Severity::warning, fmt::format("layers: {}: {}", text, list_names(keys)), {}, {}});
  };
  warn("keys that count layers from the first one are unchanged, although layers have other numbers now", positions);
  warn("keys that count the last layers are unchanged, so they apply to other layers", last);
}

// Changes the configuration. Returns the changed keys.
std::vector<std::string> cut_config(Model& model, const LayerCut& cut) {
  const LayerList& list = cut.list;
  const std::string path = model.origin.path.string();
  const auto before = list.family == nullptr ? std::nullopt : plan_layers(model);
  LayerKeyCut keys(cut);
  Attributes config = whole_config(model);
  if (!list.object.empty()) config.set(list.object, keys.change(find_layer_keys(config, list)));
  // Keys outside text_config may repeat those in it. Keys outside another object, such as vision_config, describe the
  // text model, whose layers stay.
  if (list.object.empty() || list.object == "text_config") config = keys.change(config);
  // Without a prefix, any text that begins with a number looks like a module's name, for example a version.
  const bool has_prefix = !list.prefixes.front().empty();
  if (has_prefix && !config.empty())
    config = std::move(*rename_modules(Value(std::move(config)), cut)).take<Attributes>();
  if (!config.empty()) parse_config(model, std::move(config), path);
  std::vector<std::string> changed = keys.changed();
  if (before) {
    std::vector<LayerPlan> wanted;
    for (const std::uint64_t layer : cut.kept) wanted.push_back(before->at(static_cast<std::size_t>(layer)));
    std::ranges::move(add_layer_keys(model, list, wanted, path), std::back_inserter(changed));
  } else {
    warn_of_positions(model, cut);
  }
  return changed;
}

// Changes GGUF's keys of architectures that Poise does not know: numbers of layers, and lists with an item for each
// layer.
std::vector<std::string> cut_attributes(Model& model, const LayerCut& cut) {
  const std::string architecture = fmt::format("{}.", model.card.model_type);
  Attributes changes;
  for (const auto& [key, value] : model.attributes) {
    if (model.card.model_type.empty() || !key.starts_with(architecture)) continue;
    const auto* items = value.get_if<Value::Array>();
    if (key.ends_with(".block_count") && value == Value(cut.list.count)) {
      changes.set(key, static_cast<std::uint64_t>(cut.kept.size()));
    } else if (items != nullptr && items->size() == cut.list.count) {
      changes.set(key, keep_layer_items(*items, cut));
    }
  }
  std::vector<std::string> changed;
  for (const auto& [key, value] : changes) {
    changed.push_back(key);
    model.attributes.set(key, value);
  }
  return changed;
}

// Returns the numbers of the layers that are left out, such as "4 to 7, 9".
std::string format_left_out(const LayerCut& cut) {
  std::vector<std::string> runs;
  std::uint64_t begin = 0;
  const auto add = [&](std::uint64_t end) {
    if (end == begin) return;
    runs.push_back(end == begin + 1 ? fmt::format("{}", begin) : fmt::format("{} to {}", begin, end - 1));
  };
  for (const std::uint64_t layer : cut.kept) {
    add(layer);
    begin = layer + 1;
  }
  add(cut.list.count);
  return list_names(runs);
}

}  // namespace

std::vector<std::string> cut_layer_keys(Model& model, const LayerCut& cut) {
  std::vector<std::string> keys = cut_config(model, cut);
  std::ranges::move(cut_attributes(model, cut), std::back_inserter(keys));
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void cut_layers(Revision& revision, const ConvertOptions& options) {
  if (options.layers.empty()) return;
  if (!options.imatrix.empty())
    refuse_option("layers",
                  "an importance matrix has the layers of the whole model: quantize the model first, then leave "
                  "out layers of the result");
  const LayerCut cut = parse_layer_cut(revision.model, options.layers);
  if (cut.kept.size() == cut.list.count) return;
  const std::vector<std::string> keys = cut_layer_keys(revision.model, cut);
  const std::size_t before = revision.left_out.size();
  revision.change_tensors([&](Tensor& tensor) {
    const auto split = cut.list.split(tensor.name);
    const auto number = split ? cut.find_new_number(split->number) : std::nullopt;
    if (number) tensor.name = fmt::format("{}{}{}", split->prefix, *number, split->rest);
    return !split || number;
  });
  revision.changes.push_back(fmt::format("{} of {} layers stay: {} with {} are left out", cut.kept.size(),
                                         cut.list.count, format_left_out(cut),
                                         format_count(revision.left_out.size() - before, "tensor")));
  if (!keys.empty()) revision.changes.push_back(fmt::format("keys that follow the layers: {}", list_names(keys)));
}

}  // namespace poise
