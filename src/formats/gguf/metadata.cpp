#include "formats/gguf/metadata.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/config_json.hpp"
#include "formats/gguf/types.hpp"
#include "formats/metadata.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"
#include "tokenizer/gguf/texts.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kRepository = "general.base_model.0.repo_url";
constexpr std::string_view kHuggingFace = "https://huggingface.co/";

// Sets the special ids. transformers ends a text at the ids of config.json. In a file without poise.config, which
// another program wrote, only the vocabulary has them.
void set_special_ids(Attributes& config, const SpecialIds& ids) {
  const auto set = [&](const char* key, std::int32_t id) {
    if (id >= 0) config.set(key, std::int64_t{id});
  };
  set("bos_token_id", ids.bos_id);
  set("eos_token_id", ids.eos_id);
  set("pad_token_id", ids.pad_id);
}

}  // namespace

Metadata::Metadata(HeaderReader& header) {
  header.read_metadata([&](std::string_view key, MetadataValue& value) {
    if (key == kAlignmentKey) {
      const auto alignment = value.type() == ValueType::u32 ? value.read_unsigned() : std::nullopt;
      if (!alignment || !std::has_single_bit(*alignment) || *alignment > kMaxAlignment) {
        header.fail("", fmt::format("expected a power of two up to {} as u32", kMaxAlignment), value.position());
      }
      alignment_ = *alignment;
    } else if (is_split_key(key)) {
      const auto number = value.read_unsigned();
      if (!number) header.fail("", "expected an integer of 0 or more", value.position());
      (key == kSplitNumberKey ? split_.number : key == kSplitCountKey ? split_.count : split_.tensors) = *number;
    } else if (!tokens_.read(key, value, header)) {
      const Value& added = entries_.add(std::string(key), value.read_tree());
      const EntryType type{value.type(), value.type() == ValueType::array ? value.item_type() : ValueType::text};
      if (type.items != ValueType::array && type != KeyValues::choose_type(added)) types_.emplace(key, to_string(type));
    }
  });
  if (split_.count > kMaxSplits || (split_.count > 0 && split_.number >= split_.count)) {
    header.fail(kSplitNumberKey,
                fmt::format("the file is number {}, counted from 0, of {}", split_.number, split_.count), header.end());
  }
  if (const auto* name = entries_.get_if<std::string>(kArchitectureKey)) {
    const std::string architecture = *name;
    merge_equal_layers(architecture);
    architecture_ = find_file_architecture(entries_, architecture);
  }
}

// Replaces a list of equal numbers, one for each layer, by that number: llama.cpp accepts both.
void Metadata::merge_equal_layers(const std::string& architecture) {
  for (const std::string_view name : {"attention.head_count", "attention.head_count_kv", "feed_forward_length"}) {
    const std::string key = fmt::format("{}.{}", architecture, name);
    const auto* list = entries_.get_if<Value::Array>(key);
    if (list == nullptr || list->empty() || list->front().get_if<std::uint64_t>() == nullptr) continue;
    if (!std::ranges::all_of(*list, [&](const Value& item) { return item == list->front(); })) continue;
    const Value number = list->front();
    entries_.remove(key);
    entries_.add(key, number);
  }
}

// Returns true if the file has hyperparameters. An adapter has its model's architecture, but no hyperparameters.
bool Metadata::has_hyperparameters() const {
  return architecture_ != nullptr &&
         (entries_.find(fmt::format("{}.embedding_length", architecture_->name)) != nullptr ||
          entries_.find(fmt::format("{}.block_count", architecture_->name)) != nullptr);
}

void Metadata::read_card(Card& card) {
  card.author = entries_.remove_text("general.author").value_or("");
  card.license = entries_.remove_text("general.license").value_or("");
  card.uuid = entries_.remove_text("general.uuid").value_or("");
  card.created_at = entries_.remove_text(kCreatedKey).value_or("");
  card.last_modified = entries_.remove_text(kModifiedKey).value_or("");
  const auto* url = entries_.get_if<std::string>(kRepository);
  if (url == nullptr || !url->starts_with(kHuggingFace)) return;
  card.base_model = url->substr(kHuggingFace.size());
  entries_.remove(kRepository);
}

std::optional<Attributes> Metadata::read_poise_config(const std::string& path) {
  const auto text = entries_.remove_text(kConfigKey);
  if (!text) return std::nullopt;
  Value json = parse_json(*text, fmt::format("{}: {}", path, kConfigKey));
  if (json.get_if<Attributes>() == nullptr)
    throw Error(ErrorKind::invalid_file, fmt::format("gguf: {}: expected a JSON object", kConfigKey), path);
  return std::move(json).take<Attributes>();
}

// Returns why the file's keys give no hyperparameters.
std::string Metadata::explain_missing_hyperparameters() const {
  const Value* name = entries_.find(kArchitectureKey);
  if (name == nullptr) return fmt::format("{} is missing", kArchitectureKey);
  if (architecture_ == nullptr)
    return fmt::format("{} is {}, which Poise does not know", kArchitectureKey, to_json(*name));
  return fmt::format("there is no {}.embedding_length", architecture_->name);
}

namespace {

// Parses a configuration. If that fails, the error begins with `reason`: why a hyperparameter is missing.
void read_config(Model& model, Attributes config, const std::optional<std::string>& reason, const std::string& path) {
  try {
    parse_config(model, std::move(config), path);
  } catch (const Error& error) {
    if (!reason) throw;
    throw Error(error.kind(), fmt::format("gguf: {} ({})", *reason, error.message()), path);
  }
}

}  // namespace

void Metadata::move_into(Model& model, const RopeFactors& factors, const std::string& path) {
  read_card(model.card);
  const std::optional<Attributes> rest = read_poise_config(path);
  model.vocabulary = tokens_.make_vocabulary(entries_, model.warnings, path);
  if (has_hyperparameters()) {
    entries_.remove(kArchitectureKey);
    const auto unreadable = explain_unreadable_hyperparameter(entries_, *architecture_);
    Attributes config = extract_config(entries_, *architecture_, model, factors);
    if (!rest) set_special_ids(config, tokens_.special_ids());
    for (const auto& [key, value] : rest.value_or(Attributes())) config.set(key, value);
    read_config(model, std::move(config), unreadable, path);
  } else {
    const auto* text = entries_.get_if<std::string>(kArchitectureKey);
    model.card.model_type = text == nullptr ? "" : *text;
    if (rest)
      read_config(model, *rest, explain_missing_hyperparameters(),
                  path);  // poise.config may be complete without GGUF's own keys
    entries_.remove_text(kArchitectureKey);
  }
  const auto* number = entries_.get_if<std::uint64_t>("general.file_type");
  if (number != nullptr && std::in_range<std::uint32_t>(*number)) {
    model.origin.recipe = find_file_type_name(static_cast<std::uint32_t>(*number));
    entries_.remove("general.file_type");
  }
  entries_.remove_number("general.quantization_version");  // removed, because it follows from the tensors
  tokens_.append_unused_arrays(entries_.rest());
  model.attributes = Attributes::from_unique(std::move(entries_.rest()));
  std::set<std::string_view> kept;  // a search in the attributes takes time for each of them
  for (const auto& [key, value] : model.attributes) kept.insert(key);
  std::erase_if(types_, [&](const auto& entry) { return !kept.contains(entry.first); });
  model.origin.attribute_types = std::move(types_);
}

namespace {

std::string format_metadata_type(const MetadataValue& value) {
  if (value.type() != ValueType::array) return std::string(to_string(value.type()));
  return fmt::format("{}[{}]", to_string(value.item_type()), value.count());
}

}  // namespace

std::vector<MetadataKey> list_keys(const Input& input) {
  HeaderReader header(*input.source);
  std::vector<MetadataKey> keys;
  header.read_metadata([&](std::string_view key, MetadataValue& value) {
    std::string type = format_metadata_type(value);
    keys.push_back({std::string(key), std::move(type), value.read_tree()});
  });
  return keys;
}

}  // namespace poise::gguf
