#include "formats/gguf/metadata.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/config_json.hpp"
#include "formats/gguf/limits.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "formats/metadata.hpp"
#include "model/limits.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";
constexpr std::string_view kRepository = "general.base_model.0.repo_url";
constexpr std::string_view kHuggingFace = "https://huggingface.co/";

bool is_split_key(std::string_view key) { return key == "split.no" || key == "split.count" || key == "split.tensors.count"; }

}  // namespace

Metadata::Metadata(HeaderReader& header) : tokens_(std::make_shared<Tokens>()) {
  header.metadata([&](std::string_view key, MetadataValue& value) {
    if (key == kAlignmentKey) {
      const auto alignment = value.type() == ValueType::u32 ? value.unsigned_integer() : std::nullopt;
      if (!alignment || !std::has_single_bit(*alignment) || *alignment > kMaxAlignment) {
        header.fail(key, fmt::format("expected a power of two up to {} as u32", kMaxAlignment), value.position());
      }
      alignment_ = *alignment;
    } else if (is_split_key(key)) {
      const auto number = value.unsigned_integer();
      if (!number) header.fail(key, "expected a number of 0 or more", value.position());
      (key == "split.no" ? split_.number : key == "split.count" ? split_.count : split_.tensors) = *number;
    } else if (!tokens_->take(key, value, header)) {
      entries_.emplace_back(key, value.tree());
    }
  });
  if (split_.count > kMaxSplits || (split_.count > 0 && split_.number >= split_.count)) {
    header.fail("split.no", fmt::format("{} of {} files", split_.number, split_.count), header.end());
  }
  if (const Value* name = find(kArchitecture)) {
    if (const auto* text = name->get_if<std::string>()) architecture_ = architecture_named(*text);
  }
}

const Value* Metadata::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries_, key, &Attributes::Entry::first);
  return entry == entries_.end() ? nullptr : &entry->second;
}

std::optional<Value> Metadata::take(std::string_view key) {
  const auto entry = std::ranges::find(entries_, key, &Attributes::Entry::first);
  if (entry == entries_.end()) return std::nullopt;
  Value value = std::move(entry->second);
  entries_.erase(entry);
  return value;
}

std::optional<std::string> Metadata::take_text(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr || value->get_if<std::string>() == nullptr) return std::nullopt;
  return std::move(*take(key)).take<std::string>();
}

std::optional<std::int64_t> Metadata::take_number(std::string_view key) {
  const Value* value = find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  if (number == nullptr || *number > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return std::nullopt;
  const auto result = static_cast<std::int64_t>(*number);
  take(key);
  return result;
}

void Metadata::take_card(Card& card) {
  card.author = take_text("general.author").value_or("");
  card.license = take_text("general.license").value_or("");
  card.uuid = take_text("general.uuid").value_or("");
  card.created_at = take_text(kCreatedKey).value_or("");
  card.last_modified = take_text(kModifiedKey).value_or("");
  const Value* repository = find(kRepository);
  const auto* url = repository == nullptr ? nullptr : repository->get_if<std::string>();
  if (url == nullptr || !url->starts_with(kHuggingFace)) return;
  card.base_model = url->substr(kHuggingFace.size());
  take(kRepository);
}

// The keys of config.json that the metadata stands for.
Attributes Metadata::config(bool tied, const std::string& path) {
  std::vector<Attributes::Entry> entries;
  const auto prefix = std::string(architecture_->name) + ".";
  std::string model_type(architecture_->model_type);
  entries.emplace_back("model_type", model_type);
  entries.emplace_back("tie_word_embeddings", tied);
  for (const KeyRow& row : key_rows()) {
    const std::string key = prefix + std::string(row.gguf);
    const Value* value = find(key);
    if (value == nullptr) continue;
    const bool fits = row.is_integer ? value->get_if<std::uint64_t>() != nullptr : value->get_if<double>() != nullptr;
    if (!fits) continue;  // a number for each layer, say: it stays an attribute
    entries.emplace_back(std::string(row.config), *take(key));
  }
  Attributes map = Attributes::from_unique(std::move(entries));
  if (map.find("num_local_experts") != nullptr && architecture_->name == "llama") map.set("model_type", "mixtral");
  take_rope(map, prefix);
  if (const auto rest = take_text(kConfigKey)) {
    const Value json = parse_json(*rest, path);
    const auto* more = json.get_if<Attributes>();
    if (more == nullptr) throw Error(ErrorKind::invalid_file, fmt::format("gguf: {}: expected a JSON object", kConfigKey), path);
    for (const auto& [key, value] : *more) map.set(key, value);
  }
  return map;
}

// How positions are turned, where it is not the usual way.
void Metadata::take_rope(Attributes& map, const std::string& prefix) {
  const auto* hidden = map.find("hidden_size");
  const auto* heads = map.find("num_attention_heads");
  const auto integer = [](const Value* value) { return value == nullptr || value->get_if<std::uint64_t>() == nullptr ? 0 : *value->get_if<std::uint64_t>(); };
  const std::uint64_t usual = integer(heads) == 0 ? 0 : integer(hidden) / integer(heads);
  const std::uint64_t head = map.find("head_dim") != nullptr ? integer(map.find("head_dim")) : usual;
  if (const Value* turned = find(prefix + "rope.dimension_count"); turned != nullptr && integer(turned) > 0 && head > 0) {
    if (integer(turned) != head) map.set("partial_rotary_factor", static_cast<double>(integer(turned)) / static_cast<double>(head));
    take(prefix + "rope.dimension_count");
  }
  // llama.cpp has one length for the values, too; transformers has no name for another one.
  if (const Value* values = find(prefix + "attention.value_length"); values != nullptr && head > 0 && integer(values) == head)
    take(prefix + "attention.value_length");
  const Value* type = find(prefix + "rope.scaling.type");
  const auto* name = type == nullptr ? nullptr : type->get_if<std::string>();
  if (name == nullptr) return;
  if (*name != "none") {
    Attributes scaling{{"rope_type", *name}};
    if (const Value* factor = find(prefix + "rope.scaling.factor")) scaling.set("factor", *factor);
    if (const Value* length = find(prefix + "rope.scaling.original_context_length")) scaling.set("original_max_position_embeddings", *length);
    map.set("rope_scaling", std::move(scaling));
  }
  for (const std::string_view key : {"rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length"}) take(prefix + std::string(key));
}

void Metadata::give_to(Model& model, bool tied, const std::string& path) {
  take_card(model.card);
  if (architecture_ != nullptr) {
    take(kArchitecture);
    take_config(model, config(tied, path), path);
  } else {
    model.card.model_type = take_text(kArchitecture).value_or("");
  }
  // Both follow from the tensors.
  take_number("general.file_type");
  take_number("general.quantization_version");
  model.vocabulary = tokens_->vocabulary(*this, path);
  tokens_->give_back(entries_);
  model.attributes = Attributes::from_unique(std::move(entries_));
}

}  // namespace poise::gguf
