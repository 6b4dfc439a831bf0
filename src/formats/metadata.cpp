#include "formats/metadata.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/config_json.hpp"
#include "formats/vocabulary_json.hpp"
#include "syntax/json.hpp"
#include "syntax/json_writer.hpp"
#include "syntax/limits.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise {
namespace {

constexpr std::string_view kCard = "poise.card";
constexpr std::string_view kConfig = "poise.config";
constexpr std::string_view kVocabulary = "poise.vocabulary";

[[noreturn]] void fail(const Model& model, std::string_view attribute, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("attribute {}: {}", attribute, problem), model.origin.path.string());
}

Card card_from(const Model& model, const Attributes& map) {
  const auto text = [&](std::string_view key) -> std::string {
    const Value* value = map.find(key);
    if (value == nullptr) return {};
    const auto* found = value->get_if<std::string>();
    if (found == nullptr) fail(model, kCard, fmt::format("{} is not text", key));
    return *found;
  };
  return {text("model_type"),    text("base_model"), text("author"), text("created_at"),
          text("last_modified"), text("license"),    text("uuid")};
}

// Poise's attribute with that key, if it exists; throws unless it is text.
const std::string* json_text(const Model& model, std::string_view key) {
  const Value* value = model.attributes.find(key);
  if (value == nullptr) return nullptr;
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) fail(model, key, "expected JSON text");
  return text;
}

std::string name_of(const Model& model, std::string_view key) {
  return fmt::format("{}: attribute {}", model.origin.path.string(), key);
}

// The first number in a value that JSON cannot represent.
std::optional<double> number_beyond_json(const Value& value) {
  if (const auto* number = value.get_if<double>(); number != nullptr && !std::isfinite(*number)) return *number;
  const auto first_in = [](const auto& items, const auto& value_of) -> std::optional<double> {
    for (const auto& item : items) {
      if (const auto number = number_beyond_json(value_of(item))) return number;
    }
    return std::nullopt;
  };
  const auto second = [](const auto& entry) -> const Value& { return entry.second; };
  if (const auto* array = value.get_if<Value::Array>())
    return first_in(*array, [](const Value& item) -> const Value& { return item; });
  if (const auto* map = value.get_if<Attributes>()) return first_in(*map, second);
  const auto* pairs = value.get_if<Value::Pairs>();
  if (pairs == nullptr) return std::nullopt;
  const auto key = first_in(*pairs, [](const auto& entry) -> const Value& { return entry.first; });
  return key ? key : first_in(*pairs, second);
}

// Takes the JSON object of a text attribute from the model; nothing if it is missing.
std::optional<Attributes> take_json(Model& model, std::string_view key) {
  const std::string* text = json_text(model, key);
  if (text == nullptr) return std::nullopt;
  Value json = parse_json(*text, name_of(model, key));
  if (json.get_if<Attributes>() == nullptr) fail(model, key, "expected a JSON object");
  model.attributes.erase(key);
  return std::move(json).take<Attributes>();
}

}  // namespace

// JSON would turn them into null, which means the default.
void require_finite(const Attributes& map, std::string_view what) {
  for (const auto& [key, value] : map) {
    if (const auto number = number_beyond_json(value))
      throw Error(ErrorKind::unsupported, fmt::format("{}: {} is {}, which JSON cannot hold", what, key, *number));
  }
}

std::string json_text(const Value& value) {
  JsonWriter out(-1, JsonWriter::NotFinite::named);
  out.value(value);
  return out.take();
}

std::optional<Value> parse_json_list(std::string_view text) {
  try {
    Value value = parse_json(text, "");
    return value.get_if<Value::Array>() == nullptr ? std::nullopt : std::optional(std::move(value));
  } catch (const Error&) {
    return std::nullopt;
  }
}

Attributes text_attributes(const Attributes& attributes) {
  std::vector<Attributes::Entry> entries;
  for (const auto& [key, value] : attributes)
    entries.emplace_back(key, value.get_if<std::string>() != nullptr ? value : Value(json_text(value)));
  return Attributes::from_unique(std::move(entries));
}

DescribedVocabulary described_vocabulary(const Model& model) {
  DescribedVocabulary described{std::nullopt, model.attributes, {}};
  if (model.vocabulary) return described;
  try {
    described.made = vocabulary_of(model);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    described.problem = error.message();
  }
  if (!described.made) return described;
  if (model.config) described.made->max_length = static_cast<std::int32_t>(model.config->max_position_embeddings);
  std::vector<Attributes::Entry> entries;
  std::ranges::copy_if(model.attributes, std::back_inserter(entries),
                       [](const Attributes::Entry& entry) { return !is_gguf_tokenizer_key(entry.first); });
  described.attributes = Attributes::from_unique(std::move(entries));
  return described;
}

std::string text_loss(const DescribedVocabulary& described, std::string_view format) {
  if (!described.problem.empty()) {
    return fmt::format(
        "{} holds text attributes only: what describes the vocabulary becomes text that no tokenizer is made of ({})",
        format, described.problem);
  }
  return described.made ? fmt::format("{} holds text attributes only: what describes the vocabulary becomes {}", format,
                                      kVocabulary)
                        : std::string();
}

Attributes text_attributes(const Model& model) {
  const DescribedVocabulary described = described_vocabulary(model);
  Attributes result = text_attributes(described.attributes);
  for (const auto& [key, value] : metadata_attributes(model)) result.set(key, value);
  if (described.made) result.set(std::string(kVocabulary), vocabulary_json(*described.made));
  return result;
}

std::string text_loss(const Attributes& attributes, std::string_view format) {
  std::vector<std::string> names;
  for (const auto& [key, value] : attributes) {
    if (value.get_if<std::string>() == nullptr) names.push_back(key);
  }
  return names.empty() ? std::string()
                       : fmt::format("{} holds text attributes only: {}", format, becomes_json_text(attributes, names));
}

std::string becomes_json_text(const Attributes& attributes, const std::vector<std::string>& names) {
  std::vector<std::string> beyond;
  for (const std::string& name : names) {
    if (const Value* value = attributes.find(name); value != nullptr && number_beyond_json(*value))
      beyond.push_back(name);
  }
  return fmt::format("{} {} JSON text{}", fmt::join(names, ", "), names.size() == 1 ? "becomes" : "become",
                     beyond.empty() ? std::string()
                                    : fmt::format(", in which {} {} NaN or Infinity, as Python spells them",
                                                  listed(beyond), beyond.size() == 1 ? "has" : "have"));
}

void require_readable(std::uint64_t cost, std::uint64_t text_bytes) {
  if (cost <= max_value_bytes(text_bytes)) return;
  throw Error(ErrorKind::unsupported,
              "the attributes of the model are too many: Poise would refuse to read the file (docs/limits.md)");
}

std::string config_text(const Model& model) {
  const Attributes config = whole_config(model);
  require_finite(config);
  std::string text = to_json(config);
  require_readable(reading_cost(config), text.size());
  return text;
}

Attributes metadata_attributes(const Model& model) {
  Attributes result;
  if (auto card = card_text(model.card)) result.set(std::string(kCard), *std::move(card));
  if (model.config || !model.config_json.empty()) result.set(std::string(kConfig), config_text(model));
  if (model.vocabulary) result.set(std::string(kVocabulary), vocabulary_json(*model.vocabulary));
  return result;
}

std::optional<std::string> card_text(const Card& card) {
  return card == Card{} ? std::nullopt : std::optional(to_json(card_to_attributes(card)));
}

std::optional<Card> take_card_text(Model& model) {
  const auto map = take_json(model, kCard);
  return map ? std::optional(card_from(model, *map)) : std::nullopt;
}

void take_text_attributes(Model& model) {
  if (auto card = take_card_text(model)) model.card = *std::move(card);
  if (auto map = take_json(model, kConfig)) take_config(model, std::move(*map), model.origin.path.string());
  if (const std::string* text = json_text(model, kVocabulary)) {
    model.vocabulary = parse_vocabulary_json(*text, kVocabulary, model.origin.path.string());
    model.attributes.erase(kVocabulary);
  }
}

}  // namespace poise
