#include "tokenizer/tokens/token_types.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/kept_files.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"

namespace poise {
namespace {

constexpr std::array kTypes = {TokenType::normal,       TokenType::unknown, TokenType::control,
                               TokenType::user_defined, TokenType::unused,  TokenType::byte};

// Returns the type bos, eos or pad if `id` is that token of the vocabulary.
std::optional<TokenType> find_special_type(const Vocabulary& vocabulary, std::size_t id) {
  const auto is_this = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  if (is_this(vocabulary.bos_id)) return TokenType::bos;
  if (is_this(vocabulary.eos_id)) return TokenType::eos;
  if (is_this(vocabulary.pad_id)) return TokenType::pad;
  return std::nullopt;
}

}  // namespace

bool is_control(TokenType type) {
  return type == TokenType::control || type == TokenType::bos || type == TokenType::eos || type == TokenType::pad;
}

bool is_special_id(const Vocabulary& vocabulary, std::size_t id) {
  const auto is_this = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  return is_this(vocabulary.bos_id) || is_this(vocabulary.eos_id) || is_this(vocabulary.pad_id) ||
         is_this(vocabulary.unk_id);
}

std::optional<TokenType> find_token_type(std::uint64_t number) {
  if (number < 1 || number > kTypes.size()) return std::nullopt;
  return kTypes[number - 1];
}

std::int32_t find_token_type_number(TokenType type) {
  if (is_control(type)) type = TokenType::control;
  return static_cast<std::int32_t>(std::ranges::find(kTypes, type) - kTypes.begin()) + 1;
}

TokenType choose_special_token_type(TokenType type, const Vocabulary& vocabulary, std::size_t id) {
  return is_control(type) ? find_special_type(vocabulary, id).value_or(TokenType::control) : type;
}

TokenType choose_token_type_by_id(const Vocabulary& vocabulary, std::size_t id) {
  const TokenType type = vocabulary.type(id);
  if (type == TokenType::byte || type == TokenType::unknown) return type;
  return find_special_type(vocabulary, id).value_or(type);
}

Attributes read_generation_config(const Model& model) {
  const auto* map = model.attributes.get_if<Attributes>(kGenerationConfig);
  return map != nullptr ? *map : read_kept_object(model.attributes, kGenerationConfig);
}

Attributes make_generation_config(const Attributes& attributes) {
  Attributes generation;
  for (const SamplingKey& row : kSamplingKeys) {
    const Value* value = attributes.find(std::string(kSamplingPrefix).append(row.gguf));
    if (value == nullptr) continue;
    // transformers samples only if do_sample is true.
    if (generation.empty()) generation.set("do_sample", true);
    generation.set(std::string(row.config), *value);
  }
  return generation;
}

std::vector<TokenId> find_end_tokens(const Model& model, TokenId eos, std::size_t tokens) {
  constexpr std::size_t kMost = 64;
  std::vector<TokenId> ids;
  const auto add_number = [&](const Value& value) {
    const auto* id = value.get_if<std::uint64_t>();
    if (id == nullptr || *id >= tokens || ids.size() == kMost) return;
    if (std::ranges::find(ids, static_cast<TokenId>(*id)) == ids.end()) ids.push_back(static_cast<TokenId>(*id));
  };
  const auto add = [&](const Attributes& from, std::string_view key) {
    const Value* value = from.find(key);
    if (value == nullptr) return;
    const auto* list = value->get_if<Value::Array>();
    if (list == nullptr) return add_number(*value);
    for (const Value& item : *list) add_number(item);
  };
  add_number(std::int64_t{eos});
  add(model.config_json, "eos_token_id");
  // Multimodal models have it in text_config.
  if (const auto* text = model.config_json.get_if<Attributes>("text_config")) add(*text, "eos_token_id");
  add(read_generation_config(model), "eos_token_id");
  add(model.attributes, "tokenizer.ggml.eot_token_id");
  add(model.attributes, "tokenizer.ggml.eom_token_id");
  return ids;
}

namespace {

TokenDisplay choose_display(const Vocabulary& vocabulary, std::size_t id) {
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
  if (!parse_byte_piece(vocabulary.text(id))) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("token {} is a byte token, but its text is \"{}\"; expected <0x00> to <0xFF>", id,
                            vocabulary.text(id)));
  }
  return TokenDisplay::byte;
}

}  // namespace

std::vector<TokenDisplay> find_token_displays(const Vocabulary& vocabulary) {
  std::vector<TokenDisplay> displays;
  displays.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) displays.push_back(choose_display(vocabulary, id));
  return displays;
}

}  // namespace poise
