#include "formats/gguf/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/gguf/limits.hpp"
#include "model/limits.hpp"

namespace poise::gguf {
namespace {

// llama.cpp's llama_token_type; 0 is undefined.
constexpr std::array kTypes = {TokenType::unused,       TokenType::normal, TokenType::unknown, TokenType::control,
                               TokenType::user_defined, TokenType::unused, TokenType::byte};

TokenType type_of(std::int32_t number) {
  return number >= 0 && static_cast<std::size_t>(number) < kTypes.size() ? kTypes[static_cast<std::size_t>(number)] : TokenType::normal;
}

[[noreturn]] void fail(std::string_view what, std::string_view problem, const std::string& path) {
  throw Error(ErrorKind::invalid_file, fmt::format("gguf: metadata: {}{}: {}", kTokenizer, what, problem), path);
}

}  // namespace

std::int32_t type_number(TokenType type) {
  switch (type) {
    case TokenType::normal: return 1;
    case TokenType::unknown: return 2;
    case TokenType::control:
    case TokenType::bos:
    case TokenType::eos:
    case TokenType::pad: return 3;
    case TokenType::user_defined: return 4;
    case TokenType::unused: return 5;
    case TokenType::byte: return 6;
  }
  return 1;
}

TokenType with_special(TokenType type, const Vocabulary& vocabulary, std::size_t id) {
  if (type != TokenType::control) return type;
  const auto is = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  return is(vocabulary.bos_id) ? TokenType::bos : is(vocabulary.eos_id) ? TokenType::eos : is(vocabulary.pad_id) ? TokenType::pad : type;
}

TokenType read_type(const Vocabulary& vocabulary, std::size_t id) { return with_special(type_of(type_number(vocabulary.type(id))), vocabulary, id); }

bool Tokens::take(std::string_view key, MetadataValue& value, HeaderReader& header) {
  if (!key.starts_with(kTokenizer)) return false;
  const std::string_view name = key.substr(kTokenizer.size());
  const auto require = [&](bool is_so, std::uint64_t most, std::string_view kind) {
    if (!is_so) header.fail(key, fmt::format("expected an array of {}", kind), value.position());
    if (value.count() > most)
      throw Error(ErrorKind::unsupported, fmt::format("gguf: metadata: {}: {} of them, at most {} are allowed", key, value.count(), most));
  };
  if (name == "tokens" || name == "merges") {
    std::optional<Texts>& texts = name == "tokens" ? tokens_ : merges_;
    require(value.type() == ValueType::array && value.item_type() == ValueType::text, name == "tokens" ? kMaxTokens : kMaxMerges, "texts");
    texts.emplace();
    value.texts([&](std::string_view text) {
      if (text.size() > std::numeric_limits<std::uint32_t>::max() - texts->arena.size()) header.fail(key, "more than 4 GiB of text", value.position());
      texts->arena += text;
      texts->ends.push_back(static_cast<std::uint32_t>(texts->arena.size()));
    });
  } else if (name == "scores") {
    require(value.type() == ValueType::array && value.item_type() == ValueType::f32, kMaxTokens, "f32");
    scores_.emplace();
    value.numbers([&](double number) { scores_->push_back(static_cast<float>(number)); });
  } else if (name == "token_type") {
    require(value.type() == ValueType::array && (value.item_type() == ValueType::i32 || value.item_type() == ValueType::u32), kMaxTokens, "i32");
    types_.emplace();
    value.numbers([&](double number) { types_->push_back(number > 1000 || number < 0 ? -1 : static_cast<std::int32_t>(number)); });
  } else {
    return false;
  }
  return true;
}

std::optional<Vocabulary> Tokens::vocabulary(Metadata& metadata, const std::string& path) {
  if (!tokens_) return std::nullopt;
  const std::size_t count = tokens_->size();
  if (scores_ && scores_->size() != count) fail("scores", fmt::format("{} of them for {} tokens", scores_->size(), count), path);
  if (types_ && types_->size() != count) fail("token_type", fmt::format("{} of them for {} tokens", types_->size(), count), path);
  const Value* model = metadata.find(std::string(kTokenizer) + "model");
  if (model == nullptr || *model != Value("llama")) return std::nullopt;
  metadata.take(std::string(kTokenizer) + "model");
  Vocabulary vocabulary;
  vocabulary.reserve(count, tokens_->arena.size());
  const auto take_id = [&](std::string_view name) -> std::int32_t {
    const auto id = metadata.take_number(std::string(kTokenizer) + std::string(name));
    if (!id) return -1;
    if (static_cast<std::size_t>(*id) >= count) fail(name, fmt::format("{}: there are {} tokens", *id, count), path);
    return static_cast<std::int32_t>(*id);
  };
  vocabulary.bos_id = take_id("bos_token_id");
  vocabulary.eos_id = take_id("eos_token_id");
  vocabulary.unk_id = take_id("unknown_token_id");
  vocabulary.pad_id = take_id("padding_token_id");
  vocabulary.max_length = static_cast<std::int32_t>(metadata.take_number(kLongestKey).value_or(0));
  for (std::size_t id = 0; id < count; ++id) {
    const TokenType type = types_ ? type_of((*types_)[id]) : TokenType::normal;
    vocabulary.add(tokens_->at(id), scores_ ? (*scores_)[id] : 0.0F, with_special(type, vocabulary, id));
  }
  const auto take_flag = [&](std::string_view name, bool usual) {
    const std::string key = std::string(kTokenizer) + std::string(name);
    const Value* value = metadata.find(key);
    const auto* flag = value == nullptr ? nullptr : value->get_if<bool>();
    if (flag == nullptr) return usual;
    const bool result = *flag;
    metadata.take(key);
    return result;
  };
  vocabulary.add_dummy_prefix = take_flag("add_space_prefix", true);
  vocabulary.remove_extra_whitespaces = take_flag("remove_extra_whitespaces", false);
  // What writing a vocabulary says by itself.
  const auto take_usual = [&](std::string_view name, const Value& usual) {
    const std::string key = std::string(kTokenizer) + std::string(name);
    if (const Value* value = metadata.find(key); value != nullptr && *value == usual) metadata.take(key);
  };
  take_usual("pre", "default");
  take_usual("add_bos_token", vocabulary.bos_id >= 0);
  take_usual("add_eos_token", false);
  tokens_.reset();
  scores_.reset();
  types_.reset();
  return vocabulary;
}

void Tokens::give_back(std::vector<Attributes::Entry>& entries) {
  const auto give = [&](std::string_view name, auto& items, auto&& value_of) {
    if (!items) return;
    Value::Array array;
    array.reserve(items->size());
    for (std::size_t i = 0; i < items->size(); ++i) array.push_back(value_of(*items, i));
    entries.emplace_back(std::string(kTokenizer) + std::string(name), std::move(array));
    items.reset();
  };
  give("tokens", tokens_, [](const Texts& texts, std::size_t i) { return Value(texts.at(i)); });
  give("scores", scores_, [](const std::vector<float>& scores, std::size_t i) { return Value(static_cast<double>(scores[i])); });
  give("token_type", types_, [](const std::vector<std::int32_t>& types, std::size_t i) { return Value(types[i]); });
  give("merges", merges_, [](const Texts& texts, std::size_t i) { return Value(texts.at(i)); });
}

}  // namespace poise::gguf
