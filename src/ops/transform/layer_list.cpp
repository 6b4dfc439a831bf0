#include "ops/transform/layer_list.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "ops/transform/revision.hpp"

namespace poise {
namespace {

constexpr std::string_view kLayers = "layers";  // the name of the option

// Names layers [begin, end).
struct LayerRange {
  std::uint64_t begin = 0;
  std::uint64_t end = UINT64_MAX;  // the default: to the last layer
};

struct LayerRanges {
  // The names of layers up to the number: "encoder.block.", or empty. std::nullopt: the model's layers.
  std::optional<std::string> list;
  std::vector<LayerRange> ranges;
};

// Parses "0:12,16:32", ":4", "8:", "5", and any of these after "encoder.block=", or after "=" for names that begin with
// the number.
LayerRanges parse_ranges(std::string_view text) {
  LayerRanges parsed;
  if (const std::size_t equals = text.rfind('='); equals != std::string_view::npos) {
    std::string& list = parsed.list.emplace(text.substr(0, equals));
    if (!list.empty() && !list.ends_with('.')) list += '.';
    text.remove_prefix(equals + 1);
  }
  const auto fail = [&](std::string_view range, std::string_view problem) {
    refuse_option(kLayers, fmt::format("\"{}\" {}; write ascending ranges whose second number is not included: "
                                       "0:12,16:32 keeps layers 0 to 11 and 16 to 31",
                                       range, problem));
  };
  std::uint64_t next = 0;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = text.find(',');
    is_last = comma == std::string_view::npos;
    const std::string_view range = text.substr(0, comma);
    if (!is_last) text.remove_prefix(comma + 1);
    const std::size_t colon = range.find(':');
    const std::string_view first = range.substr(0, colon);
    LayerRange numbers;
    const auto parse = [&](std::string_view number, std::uint64_t& to) {
      if (number.empty() && colon != std::string_view::npos) return;
      const auto value = parse_number_text<std::uint64_t>(number);
      if (!value) fail(range, "is not a range of layers");
      to = *value;
    };
    parse(first, numbers.begin);
    if (colon == std::string_view::npos) {
      numbers.end = numbers.begin == UINT64_MAX ? numbers.begin : numbers.begin + 1;
    } else {
      parse(range.substr(colon + 1), numbers.end);
    }
    if (numbers.begin >= numbers.end) fail(range, "is empty");
    if (numbers.begin < next) fail(range, "begins before the end of the range in front of it");
    next = numbers.end;
    parsed.ranges.push_back(numbers);
  }
  return parsed;
}

std::vector<std::uint64_t> list_kept_layers(const std::vector<LayerRange>& ranges, std::uint64_t count) {
  std::vector<std::uint64_t> kept;
  for (const LayerRange& range : ranges) {
    const bool is_open = range.end == UINT64_MAX;
    if (range.begin >= count || (!is_open && range.end > count))
      refuse_option(kLayers, fmt::format("{}:{} is outside the model's {} layers, 0:{}", range.begin,
                                         is_open ? std::string() : fmt::format("{}", range.end), count, count));
    for (std::uint64_t layer = range.begin; layer < std::min(range.end, count); ++layer) kept.push_back(layer);
  }
  return kept;
}

// These functions find the lists of layers of a model.

std::optional<LayerName> split_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view after = name.substr(prefix.size());
  const std::string_view digits = after.substr(0, after.find('.'));
  const bool has_zeros = digits.size() > 1 && digits.starts_with('0');
  const auto number = has_zeros ? std::nullopt : parse_number_text<std::uint32_t>(digits);
  if (!number || !std::ranges::all_of(digits, is_ascii_digit)) return std::nullopt;
  return LayerName{prefix, *number, after.substr(digits.size())};
}

std::optional<LayerName> split_name(std::string_view name, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (const auto split = split_name(name, prefix)) return split;
  }
  return std::nullopt;
}

// Returns the prefix of the family's layers in all spellings.
std::vector<std::string> list_prefixes(const Family& family) {
  std::vector<std::string> prefixes = {std::string(family.tensors.layers)};
  for (const auto& [canonical, other] : family.spellings) {
    if (family.tensors.layers.starts_with(canonical))
      prefixes.push_back(std::string(other).append(family.tensors.layers.substr(canonical.size())));
  }
  return prefixes;
}

// Returns the numbers of layers by prefix: the part of a tensor's name before its first number.
std::map<std::string, std::set<std::uint64_t>> find_layer_numbers(const Model& model) {
  std::map<std::string, std::set<std::uint64_t>> lists;
  for (const Tensor& tensor : model.tensors()) {
    const std::string_view name = tensor.name;
    for (std::size_t begin = 0; begin < name.size(); begin = name.find('.', begin) + 1) {
      if (const auto split = split_name(name, name.substr(0, begin))) {
        lists[std::string(split->prefix)].insert(split->number);
        break;
      }
      if (name.find('.', begin) == std::string_view::npos) break;
    }
  }
  return lists;
}

// Names the keys that have the number of layers of a list, by a word in the list's name.
struct CountKeys {
  std::string_view word;  // empty: any
  std::array<std::string_view, 4> keys;
};
constexpr std::array<CountKeys, 3> kCountKeys = {{{"decoder", {"decoder_layers", "num_decoder_layers"}},
                                                  {"encoder", {"encoder_layers", "num_encoder_layers"}},
                                                  {"", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}}}};

bool has_word(std::string_view list, std::string_view word) {
  return list.starts_with(word) || list.find(std::string(".").append(word)) != std::string_view::npos;
}

// Returns the value of the key that counts the layers of a list; nullptr if the configuration has none.
const Value* find_layer_count(const Attributes& config, std::string_view list) {
  for (const CountKeys& row : kCountKeys) {
    if (!row.word.empty() && !has_word(list, row.word)) continue;
    for (const std::string_view key : row.keys) {
      const Value* count = key.empty() ? nullptr : config.find(key);
      if (count != nullptr && count->get_if<std::uint64_t>() != nullptr) return count;
    }
  }
  return nullptr;
}

// Returns the name of the object inside a configuration that describes the list: "vision_config" for
// "vision_model.encoder.layers.". Empty: the configuration itself does.
std::string find_object_name(const Attributes& config, std::string_view list, const Family* family) {
  constexpr std::string_view kEnding = "_config";
  if (family != nullptr) return config.get_if<Attributes>(family->nested) == nullptr ? "" : std::string(family->nested);
  for (const auto& [key, value] : config) {
    const bool is_object =
        value.get_if<Attributes>() != nullptr && key.size() > kEnding.size() && key.ends_with(kEnding);
    if (is_object && key != "text_config" && has_word(list, key.substr(0, key.size() - kEnding.size()))) return key;
  }
  return config.get_if<Attributes>("text_config") == nullptr ? "" : "text_config";
}

const Attributes& find_object_keys(const Attributes& config, const std::string& object) {
  return object.empty() ? config : *config.get_if<Attributes>(object);
}

std::uint64_t find_last_number(const Model& model, const std::vector<std::string>& prefixes) {
  std::uint64_t last = 0;
  for (const Tensor& tensor : model.tensors()) {
    if (const auto split = split_name(tensor.name, prefixes)) last = std::max(last, split->number);
  }
  return last;
}

// Returns the prefix of the only list with the configuration's number of layers, or else of the longest list.
std::string choose_list(const Model& model, const Attributes& config) {
  const auto lists = find_layer_numbers(model);
  if (lists.empty()) refuse_option(kLayers, "no tensor's name has a number, so there are no layers");
  // If there are more lists, none is compared with the configuration, which may have many keys.
  constexpr std::size_t kMostLists = 1000;
  std::vector<std::string> best;
  const auto choose = [&](auto&& matches) {
    best.clear();
    for (const auto& [prefix, numbers] : lists) {
      if (matches(prefix, numbers)) best.push_back(prefix);
    }
  };
  choose([&](const std::string& prefix, const std::set<std::uint64_t>& numbers) {
    if (lists.size() > kMostLists) return false;
    const Value* count = find_layer_count(find_object_keys(config, find_object_name(config, prefix, nullptr)), prefix);
    return count != nullptr && *count == Value(static_cast<std::uint64_t>(numbers.size()));
  });
  if (best.size() == 1) return best.front();
  std::size_t most = 0;
  for (const auto& [prefix, numbers] : lists) most = std::max(most, numbers.size());
  choose([&](const std::string&, const std::set<std::uint64_t>& numbers) { return numbers.size() == most; });
  if (best.size() == 1) return best.front();
  std::string first = best.front();
  if (first.empty()) {
    best.front() = "names that begin with the number";
  } else {
    first.pop_back();  // removes the dot
  }
  refuse_option(kLayers, fmt::format("the model has several lists of {} layers: {}; name one, as in {}=0:{}", most,
                                     list_names(best), first, most));
}

LayerList find_layers(const Model& model, const std::optional<std::string>& named) {
  const Attributes config = whole_config(model);
  LayerList list;
  const Family* family = model.config ? &find_family_or_llama(model) : nullptr;
  if (named) {
    list.prefixes = {*named};
  } else if (family != nullptr) {
    list.prefixes = list_prefixes(*family);
  }
  const auto is_layer = [&](const Tensor& tensor) { return split_name(tensor.name, list.prefixes).has_value(); };
  const bool is_found = std::ranges::any_of(model.tensors(), is_layer);
  if (is_found && !named) {
    list.family = family;
    list.object = find_object_name(config, list.prefixes.front(), family);
    list.count = static_cast<std::uint64_t>(model.config->num_hidden_layers);
    return list;
  }
  if (!is_found && named)
    refuse_option(kLayers, named->empty() ? "no tensor's name begins with a number"
                                          : fmt::format("no tensor's name begins with \"{}\" and a number", *named));
  if (!is_found) list.prefixes = {choose_list(model, config)};
  if (family != nullptr && list.prefixes.front().ends_with(family->tensors.layers)) list.family = family;
  list.object = find_object_name(config, list.prefixes.front(), list.family);
  const Value* count = find_layer_count(find_object_keys(config, list.object), list.prefixes.front());
  list.count = find_last_number(model, list.prefixes) + 1;
  if (count != nullptr) list.count = std::min(list.count, *count->get_if<std::uint64_t>());
  return list;
}

// Returns what find_layers() returns. Throws bad_argument for 0 layers, and for more layers than there are tensors or
// than the numbers in their names allow, because later work is proportional to the number of layers.
LayerList find_checked_layers(const Model& model, const std::optional<std::string>& named) {
  LayerList list = find_layers(model, named);
  const std::uint64_t numbers = find_last_number(model, list.prefixes) + 1;
  if (list.count == 0 || list.count > numbers || list.count > model.size())
    refuse_option(kLayers,
                  fmt::format("the model has {} layers by its configuration, but its tensors {}N have {} numbers",
                              list.count, list.prefixes.front(), std::min<std::uint64_t>(numbers, model.size())));
  return list;
}

}  // namespace

std::optional<LayerName> LayerList::split(std::string_view name) const { return split_name(name, prefixes); }

std::optional<std::uint64_t> LayerCut::find_new_number(std::uint64_t layer) const {
  if (layer >= list.count) return layer - list.count + kept.size();
  const auto found = is_ascending ? std::ranges::lower_bound(kept, layer) : std::ranges::find(kept, layer);
  if (found == kept.end() || *found != layer) return std::nullopt;
  return static_cast<std::uint64_t>(found - kept.begin());
}

LayerCut parse_layer_cut(const Model& model, std::string_view text) {
  const LayerRanges given = parse_ranges(text);
  LayerCut cut{.list = find_checked_layers(model, given.list), .kept = {}};
  cut.kept = list_kept_layers(given.ranges, cut.list.count);
  return cut;
}

const Attributes& find_layer_keys(const Attributes& config, const LayerList& list) {
  return find_object_keys(config, list.object);
}

bool counts_layers(std::string_view key, const LayerList& list) {
  return std::ranges::any_of(kCountKeys, [&](const CountKeys& row) {
    return std::ranges::find(row.keys, key) != row.keys.end() &&
           (row.word.empty() || has_word(list.prefixes.front(), row.word));
  });
}

}  // namespace poise
