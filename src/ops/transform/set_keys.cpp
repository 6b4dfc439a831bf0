// This revision sets fields of the card, keys of the configuration, and attributes.
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
#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "model/card.hpp"
#include "ops/transform/revision.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

constexpr std::string_view kSet = "set";  // the name of the option
constexpr std::string_view kCardPrefix = "card.";
constexpr std::string_view kConfigPrefix = "config.";
// Writers store card, configuration and vocabulary in attributes with this prefix.
constexpr std::string_view kOwnPrefix = "poise.";
constexpr std::string_view kTemplate = "tokenizer.chat_template";  // the key in GGUF
constexpr std::size_t kMostValue = 60;                             // bytes of a value in a message

// Returns null for a name that the card does not have.
const CardField* find_card_field(std::string_view name) {
  const auto fields = list_card_fields();
  const auto found = std::ranges::find(fields, name, &CardField::name);
  return found == fields.end() ? nullptr : &*found;
}

enum class KeyPlace { card, config, attributes, chat_template };

struct FoundKey {
  KeyPlace place;
  std::string name;
};

// Finds the place of a key. The first of these places that fits counts: an attribute of the model with that name, the
// vocabulary's chat template, the place that a prefix names, a field of the card, a key of the configuration. Otherwise
// the key is a new attribute.
FoundKey find_key(const Model& model, const std::string& key) {
  if (model.attributes.find(key) != nullptr) return {KeyPlace::attributes, key};
  if (key == kTemplate && model.vocabulary) return {KeyPlace::chat_template, key};
  if (key.starts_with(kConfigPrefix)) return {KeyPlace::config, key.substr(kConfigPrefix.size())};
  const Attributes config = whole_config(model);
  const bool is_field = key.starts_with(kCardPrefix) || find_card_field(key) != nullptr;
  if (is_field) {
    std::string name = key.starts_with(kCardPrefix) ? key.substr(kCardPrefix.size()) : key;
    const bool is_type = name == "model_type" && !config.empty();  // the configuration sets the card's model_type
    return {is_type ? KeyPlace::config : KeyPlace::card, std::move(name)};
  }
  const bool has_key =
      config.find(key) != nullptr || find_family_keys(find_family_or_llama(model), config).find(key) != nullptr;
  return {has_key ? KeyPlace::config : KeyPlace::attributes, key};
}

std::optional<Value> parse_value(const std::string& text) {
  try {
    return parse_json(text, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Distinguishes values as messages do: all numbers are of one kind.
enum class ValueKind { none, text, truth, number, list, map };

ValueKind find_kind(const Value& value) {
  if (value.get_if<std::string>() != nullptr) return ValueKind::text;
  if (value.get_if<bool>() != nullptr) return ValueKind::truth;
  if (value.get_if<Value::Array>() != nullptr) return ValueKind::list;
  if (value.get_if<Attributes>() != nullptr) return ValueKind::map;
  const bool is_number = value.get_if<std::uint64_t>() != nullptr || value.get_if<std::int64_t>() != nullptr ||
                         value.get_if<double>() != nullptr;
  return is_number ? ValueKind::number : ValueKind::none;
}

std::string_view describe_kind(ValueKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"null",     "text",   "true or false",
                                                      "a number", "a list", "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Returns `given` as it is if it is not text, or if the old value is text. Otherwise the text must be JSON of the old
// value's kind, or null for the configuration; throws bad_argument for other text. If the old value is missing or null,
// text for the configuration may be any JSON. Text that is not JSON, and text for an attribute, then stays text.
Value convert_text(const std::string& key, const Value& given, const Value* before, KeyPlace place) {
  const auto* text = given.get_if<std::string>();
  const ValueKind kind = before == nullptr ? ValueKind::none : find_kind(*before);
  if (text == nullptr || kind == ValueKind::text) return given;
  if (kind == ValueKind::none) return place == KeyPlace::config ? parse_value(*text).value_or(given) : given;
  auto parsed = parse_value(*text);
  if (parsed && (find_kind(*parsed) == kind || (place == KeyPlace::config && *parsed == Value())))
    return *std::move(parsed);
  refuse_option(kSet, fmt::format("{} is {}, but \"{}\" is not; write lists and objects as JSON", key,
                                  describe_kind(kind), shorten(*text, kMostValue)));
}

std::string format_short_value(const Value& value) { return shorten(to_json(value), kMostValue); }

class KeyChanges {
 public:
  explicit KeyChanges(Revision& revision) : revision_(revision), model_(revision.model) {}

  void set(const std::string& key, const Value& given) {
    if (key.empty() || !is_utf8(key)) refuse_option(kSet, "a key is empty, or not UTF-8");
    const FoundKey target = find_key(model_, key);
    if (target.name.empty()) refuse_option(kSet, fmt::format("\"{}\" has no name after its prefix", key));
    std::string whole = fmt::format("{}{}", find_prefix(target.place), target.name);
    if (std::ranges::find(set_, whole) != set_.end()) refuse_option(kSet, fmt::format("{} is given twice", whole));
    set_.push_back(std::move(whole));
    switch (target.place) {
      case KeyPlace::card: return set_card(target.name, given);
      case KeyPlace::config: return set_config(target.name, given);
      case KeyPlace::attributes: return set_attribute(target.name, given);
      case KeyPlace::chat_template: return set_chat_template(given);
    }
  }

  // Reads the configuration again after all changes.
  void finish() {
    if (config_.empty()) return;
    try {
      change_config(model_, config_, model_.origin.path.string());
    } catch (const Error& error) {
      throw Error(ErrorKind::bad_argument, fmt::format("set: {}", error.message()), error.path());
    }
  }

 private:
  static std::string_view find_prefix(KeyPlace place) {
    return place == KeyPlace::card ? kCardPrefix : place == KeyPlace::config ? kConfigPrefix : std::string_view();
  }

  void describe_change(const std::string& key, const Value* before, const Value& now) {
    if (before == nullptr) {
      revision_.changes.push_back(fmt::format("{} is new: {}", key, format_short_value(now)));
    } else if (!(*before == now)) {
      revision_.changes.push_back(
          fmt::format("{} was {}, is {}", key, format_short_value(*before), format_short_value(now)));
    }
  }

  void set_card(const std::string& name, const Value& given) {
    const CardField* field = find_card_field(name);
    if (field == nullptr) {
      std::vector<std::string_view> names;
      for (const CardField& row : list_card_fields()) names.push_back(row.name);
      refuse_option(kSet, fmt::format("the card has no field \"{}\": {}", name, list_names(names, names.size())));
    }
    const auto* text = given.get_if<std::string>();
    if (text == nullptr)
      refuse_option(kSet, fmt::format("card.{} is text, and {} is not", name, format_short_value(given)));
    const Value before(model_.card.*field->text);
    Card card = model_.card;
    card.*field->text = *text;
    model_.card = normalize_card(std::move(card));
    const Value now(model_.card.*field->text);
    describe_change(fmt::format("card.{}", name), before == Value("") && !(now == before) ? nullptr : &before, now);
  }

  void set_config(const std::string& name, const Value& given) {
    const Attributes config = whole_config(model_);
    const Value* before = find_family_keys(find_family_or_llama(model_), config).find(name);
    if (before == nullptr) before = config.find(name);
    Value value = convert_text(fmt::format("config.{}", name), given, before, KeyPlace::config);
    describe_change(fmt::format("config.{}", name), before, value);
    config_.set(name, std::move(value));
  }

  // Returns the value of a new attribute, with the type that the target requires. Throws bad_argument for values that
  // do not fit this type, and for names that Poise or the target reserves.
  Value make_attribute(const std::string& name, const Value& given) const {
    if (name.starts_with(kOwnPrefix))
      refuse_option(kSet, fmt::format("{} cannot be set: Poise writes the attributes \"{}*\" for the card, the "
                                      "configuration and the vocabulary; set {}FIELD or {}KEY instead",
                                      name, kOwnPrefix, kCardPrefix, kConfigPrefix));
    if (revision_.target->make_attribute == nullptr) return given;
    try {
      return revision_.target->make_attribute(model_, name, given);
    } catch (const Error& error) {
      refuse_option(kSet, error.message());
    }
  }

  void set_attribute(const std::string& name, const Value& given) {
    const Value* before = model_.attributes.find(name);
    Value value =
        before == nullptr ? make_attribute(name, given) : convert_text(name, given, before, KeyPlace::attributes);
    describe_change(name, before, value);
    model_.attributes.set(name, std::move(value));
  }

  // Replaces all templates that the tokenizer's files have.
  void set_chat_template(const Value& given) {
    if (given.get_if<std::string>() == nullptr) refuse_option(kSet, fmt::format("{} must be text", kTemplate));
    Vocabulary& vocabulary = *model_.vocabulary;
    const Value before = vocabulary.chat_template;
    vocabulary.chat_template = given;
    const auto is_template = [](std::string_view name) {
      return name == kChatTemplate || name == kChatTemplateJson || is_additional_template(name);
    };
    std::vector<Attributes::Entry> files;
    std::ranges::copy_if(vocabulary.files, std::back_inserter(files),
                         [&](const Attributes::Entry& file) { return !is_template(file.first); });
    vocabulary.files = Attributes::from_unique(std::move(files));
    std::erase_if(model_.origin.other_files, [&](const DirectoryFile& file) { return is_template(file.name); });
    describe_change(std::string(kTemplate), before == Value() ? nullptr : &before, given);
  }

  Revision& revision_;
  Model& model_;
  Attributes config_;
  std::vector<std::string> set_;
};

}  // namespace

void set_keys(Revision& revision, const ConvertOptions& options) {
  if (options.set.empty()) return;
  KeyChanges keys(revision);
  for (const auto& [key, value] : options.set) keys.set(key, value);
  keys.finish();
}

}  // namespace poise
