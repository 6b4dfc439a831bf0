#include "tokenizer/tokens/token_types.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"

namespace poise {
namespace {

constexpr std::array kTypes = {TokenType::normal,       TokenType::unknown, TokenType::control,
                               TokenType::user_defined, TokenType::unused,  TokenType::byte};

bool is_control(TokenType type) {
  return type == TokenType::control || type == TokenType::bos || type == TokenType::eos || type == TokenType::pad;
}

std::optional<TokenType> role_of(const Vocabulary& vocabulary, std::size_t id) {
  const auto is = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  if (is(vocabulary.bos_id)) return TokenType::bos;
  if (is(vocabulary.eos_id)) return TokenType::eos;
  if (is(vocabulary.pad_id)) return TokenType::pad;
  return std::nullopt;
}

}  // namespace

std::optional<TokenType> numbered_token_type(std::uint64_t number) {
  if (number < 1 || number > kTypes.size()) return std::nullopt;
  return kTypes[number - 1];
}

std::int32_t token_type_number(TokenType type) {
  if (is_control(type)) type = TokenType::control;
  return static_cast<std::int32_t>(std::ranges::find(kTypes, type) - kTypes.begin()) + 1;
}

TokenType special_type(TokenType type, const Vocabulary& vocabulary, std::size_t id) {
  return is_control(type) ? role_of(vocabulary, id).value_or(TokenType::control) : type;
}

TokenType type_by_id(const Vocabulary& vocabulary, std::size_t id) {
  const TokenType type = vocabulary.type(id);
  if (type == TokenType::byte || type == TokenType::unknown) return type;
  return role_of(vocabulary, id).value_or(type);
}

namespace {

class Collector {
 public:
  explicit Collector(std::size_t tokens) : size_(tokens) {}

  void add(const Value* value) {
    if (value == nullptr) return;
    if (const auto* list = value->get_if<Value::Array>()) {
      for (const Value& item : *list) add_number(item);
    } else {
      add_number(*value);
    }
  }

  std::vector<TokenId> take() { return std::move(ids_); }

 private:
  void add_number(const Value& value) {
    const auto* id = value.get_if<std::uint64_t>();
    if (id == nullptr || *id >= size_ || std::ranges::find(ids_, static_cast<TokenId>(*id)) != ids_.end()) return;
    constexpr std::size_t kMost = 64;
    if (ids_.size() < kMost) ids_.push_back(static_cast<TokenId>(*id));
  }

  std::size_t size_;
  std::vector<TokenId> ids_;
};

}  // namespace

Attributes generation_config(const Model& model) {
  const Value* value = model.attributes.find(kGenerationConfig);
  if (value == nullptr) return {};
  if (const auto* map = value->get_if<Attributes>()) return *map;
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) return {};
  try {
    const Value parsed = parse_json(*text, std::string(kGenerationConfig));
    const auto* map = parsed.get_if<Attributes>();
    return map == nullptr ? Attributes() : *map;
  } catch (const Error&) {
    return {};  // another program's attribute
  }
}

// transformers samples only if do_sample is true.
Attributes make_generation_config(const Attributes& attributes) {
  Attributes generation;
  for (const SamplingKey& row : kSamplingKeys) {
    const Value* value = attributes.find(std::string(kSamplingPrefix).append(row.gguf));
    if (value == nullptr) continue;
    if (generation.empty()) generation.set("do_sample", true);
    generation.set(std::string(row.config), *value);
  }
  return generation;
}

std::vector<TokenId> end_tokens(const Model& model, TokenId eos, std::size_t tokens) {
  Collector ids(tokens);
  const Value first(std::int64_t{eos});
  ids.add(&first);
  ids.add(model.config_json.find("eos_token_id"));
  const Value* nested = model.config_json.find("text_config");  // of multimodal directories
  if (const auto* text = nested == nullptr ? nullptr : nested->get_if<Attributes>())
    ids.add(text->find("eos_token_id"));
  const Attributes generation = generation_config(model);
  ids.add(generation.find("eos_token_id"));
  ids.add(model.attributes.find("tokenizer.ggml.eot_token_id"));
  ids.add(model.attributes.find("tokenizer.ggml.eom_token_id"));
  return ids.take();
}

namespace {

TokenDisplay display_of(const Vocabulary& vocabulary, std::size_t id) {
  switch (vocabulary.type(id)) {
    case TokenType::control:
    case TokenType::bos:
    case TokenType::eos:
    case TokenType::pad: return TokenDisplay::invisible;
    case TokenType::unknown: return TokenDisplay::unknown;
    case TokenType::normal:
    case TokenType::unused:
    case TokenType::user_defined: return TokenDisplay::text;
    case TokenType::byte: break;
  }
  if (!byte_of_piece(vocabulary.text(id))) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("token {} is a byte token, but its text is \"{}\"; expected <0x00> to <0xFF>", id,
                            vocabulary.text(id)));
  }
  return TokenDisplay::byte;
}

}  // namespace

std::vector<TokenDisplay> token_displays(const Vocabulary& vocabulary) {
  std::vector<TokenDisplay> displays;
  displays.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) displays.push_back(display_of(vocabulary, id));
  return displays;
}

}  // namespace poise
