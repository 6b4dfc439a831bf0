#include "formats/gguf/write_metadata.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "formats/gguf/limits.hpp"
#include "formats/gguf/metadata.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "formats/metadata.hpp"

namespace poise::gguf {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;

// They follow from the tensors.
constexpr std::array<std::string_view, 2> kImplied = {"torch_dtype", "dtype"};

void write_card(const Card& card, KeyValues& out) {
  const auto write = [&](std::string_view key, const std::string& text) {
    if (!text.empty() && !out.has(key)) out.text(key, text);
  };
  write("general.author", card.author);
  write("general.license", card.license);
  write("general.uuid", card.uuid);
  write(kCreatedKey, card.created_at);
  write(kModifiedKey, card.last_modified);
  if (!card.base_model.empty()) write("general.base_model.0.repo_url", "https://huggingface.co/" + card.base_model);
}

bool is_same(const Value& a, const Value& b) {
  const auto number = [](const Value& value) {
    const auto* integer = value.get_if<std::uint64_t>();
    return integer == nullptr ? value : Value(static_cast<double>(*integer));
  };
  return number(a) == number(b);
}

// The hyperparameters that a config.json says; none where it is not read.
std::optional<Config> hyperparameters_in(const Attributes& map, std::string model_type) {
  try {
    return config_from_attributes(map, model_type, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Keys of config.json that a reader of the entries would not find again.
Attributes rest_of(const Model& model, const Architecture& architecture, const Hyperparameters& hyperparameters) {
  Entries entries;
  for (const auto& [key, value] : hyperparameters.entries) entries.add(key, value);
  Attributes said = config_in(entries, *architecture_in(entries, architecture.name), model, hyperparameters.factors);
  Attributes rest;
  const auto add = [&](const std::string& key, const Value& value) {
    const Value* found = said.find(key);
    if (found != nullptr && is_same(*found, value)) return;
    rest.set(key, value);
    said.set(key, value);
  };
  const Attributes config = whole_config(model);
  add("model_type", model.card.model_type);
  for (const auto& [key, value] : config) {
    if (model.config_json.find(key) != nullptr && std::ranges::find(kImplied, key) == kImplied.end()) add(key, value);
  }
  // Then what the family makes of these, if it is something else.
  if (!model.config || hyperparameters_in(said, model.card.model_type) == model.config) return rest;
  for (const auto& [key, value] : config_to_attributes(*model.config, model.card.model_type)) add(key, value);
  return rest;
}

void write_vocabulary(const Vocabulary& vocabulary, std::uint64_t embeddings, KeyValues& out) {
  const std::string prefix(kTokenizer);
  const std::uint64_t padding = embeddings > vocabulary.size() ? embeddings - vocabulary.size() : 0;
  const std::uint64_t count = vocabulary.size() + padding;
  out.text(prefix + "model", "llama");
  if (!out.has(prefix + "pre")) out.text(prefix + "pre", "default");
  ByteWriter& texts = out.array(prefix + "tokens", ValueType::text, count);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) KeyValues::append_text(texts, vocabulary.text(id));
  for (std::uint64_t i = 0; i < padding; ++i) KeyValues::append_text(texts, fmt::format("[PAD{}]", vocabulary.size() + i));
  ByteWriter& scores = out.array(prefix + "scores", ValueType::f32, count);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) scores.f32(vocabulary.score(id));
  for (std::uint64_t i = 0; i < padding; ++i) scores.f32(-1000.0F);
  ByteWriter& types = out.array(prefix + "token_type", ValueType::i32, count);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) types.i32(type_number(vocabulary.type(id)));
  for (std::uint64_t i = 0; i < padding; ++i) types.i32(type_number(TokenType::unused));
  const auto write_id = [&](std::string_view name, std::int32_t id) {
    if (id >= 0) out.u32(prefix + std::string(name), static_cast<std::uint64_t>(id));
  };
  write_id("bos_token_id", vocabulary.bos_id);
  write_id("eos_token_id", vocabulary.eos_id);
  write_id("unknown_token_id", vocabulary.unk_id);
  write_id("padding_token_id", vocabulary.pad_id);
  out.boolean(prefix + "add_space_prefix", vocabulary.add_dummy_prefix);
  if (vocabulary.remove_extra_whitespaces) out.boolean(prefix + "remove_extra_whitespaces", true);
  if (vocabulary.max_length > 0) out.u32(kLongestKey, static_cast<std::uint64_t>(vocabulary.max_length));
  if (!out.has(prefix + "add_bos_token")) out.boolean(prefix + "add_bos_token", vocabulary.bos_id >= 0);
  if (!out.has(prefix + "add_eos_token")) out.boolean(prefix + "add_eos_token", false);
}

bool is_held(const Vocabulary& vocabulary) { return vocabulary.kind == VocabularyKind::sentencepiece_bpe; }

bool is_writable_key(std::string_view key) { return !key.empty() && key.size() <= kMaxKeyBytes && is_utf8(key); }

}  // namespace

KeyValues metadata_of(const Model& model, const Architecture* architecture, const Hyperparameters& hyperparameters, std::uint32_t file_type,
                      std::uint64_t embeddings) {
  KeyValues out;
  if (architecture != nullptr) {
    out.text("general.architecture", architecture->name);
  } else if (!model.card.model_type.empty()) {
    out.text("general.architecture", model.card.model_type);
  }
  out.u32("general.file_type", file_type);
  out.u32("general.quantization_version", kQuantizationVersion);
  // Whatever a file that was read said beside; what Poise says anew, it says for the model as it is.
  for (const auto& [key, value] : model.attributes) {
    if (is_writable_key(key) && !out.has(key) && key != kAlignmentKey) out.value(key, value);
  }
  write_card(model.card, out);
  if (architecture != nullptr) {
    for (const auto& [key, value] : hyperparameters.entries) {
      if (!out.has(key)) out.value(key, value);  // an attribute says it for each layer
    }
    if (const Attributes rest = rest_of(model, *architecture, hyperparameters); !rest.empty()) out.text(kConfigKey, to_json(rest));
  }
  if (model.vocabulary && is_held(*model.vocabulary) && !out.has(std::string(kTokenizer) + "tokens")) write_vocabulary(*model.vocabulary, embeddings, out);
  return out;
}

std::vector<std::string> metadata_losses(const Model& model, const Architecture* architecture, const Hyperparameters& hyperparameters) {
  std::vector<std::string> losses = hyperparameters.differences;
  if (model.vocabulary && !is_held(*model.vocabulary)) losses.emplace_back("gguf cannot hold a vocabulary of this kind yet");
  if (model.vocabulary && model.vocabulary->normalizer != Vocabulary().normalizer) {
    losses.push_back(fmt::format("gguf does not hold the vocabulary's normalizer {}", model.vocabulary->normalizer));
  }
  if (model.vocabulary && is_held(*model.vocabulary)) {
    const Vocabulary& vocabulary = *model.vocabulary;
    bool same = true;
    for (std::size_t id = 0; id < vocabulary.size() && same; ++id) same = read_type(vocabulary, id) == vocabulary.type(id);
    if (!same) losses.emplace_back("gguf tells BOS, EOS and padding by their ids: other tokens of these types become control tokens, or take theirs");
    const Tensor* embedding = architecture == nullptr ? nullptr : model.find("model.embed_tokens.weight");
    if (embedding != nullptr && !embedding->shape.empty() && embedding->shape.front() > vocabulary.size()) {
      losses.push_back(fmt::format("the vocabulary gets {} unused tokens more: llama.cpp wants one for each row of the embedding",
                                   embedding->shape.front() - vocabulary.size()));
    }
  }
  if (architecture == nullptr) {
    losses.push_back(model.card.model_type.empty()
                         ? std::string("llama.cpp will not run the file: the model does not say what it is")
                         : fmt::format("llama.cpp will not run the file: Poise does not know what it calls a {}", model.card.model_type));
    if (model.config || !model.config_json.empty()) losses.emplace_back("gguf cannot hold the configuration of a family that is not known");
  }
  std::vector<std::string> maps;
  for (const auto& [key, value] : model.attributes) {
    const auto* items = value.get_if<Value::Array>();
    const bool nested =
        items != nullptr && std::ranges::any_of(*items, [&](const Value& item) { return item.storage().index() != items->front().storage().index(); });
    if (value.get_if<Attributes>() != nullptr || value.get_if<Value::Pairs>() != nullptr || value.get_if<std::nullptr_t>() != nullptr || nested)
      maps.push_back(key);
  }
  if (!maps.empty()) losses.push_back(fmt::format("gguf holds numbers, texts and arrays of these: {} become JSON text", fmt::join(maps, ", ")));
  return losses;
}

}  // namespace poise::gguf
