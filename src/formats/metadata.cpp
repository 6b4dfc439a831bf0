#include "formats/metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "model/limits.hpp"
#include "syntax/json.hpp"
#include "syntax/limits.hpp"
#include "tokenizer/kinds.hpp"

namespace poise {
namespace {

constexpr std::string_view kCard = "poise.card";
constexpr std::string_view kConfig = "poise.config";
constexpr std::string_view kVocabulary = "poise.vocabulary";

// Tokens are byte strings: those that are no UTF-8 travel as lower-case hex behind a NUL, which no token text begins with.
std::string encode_text(std::string_view text) {
  if (is_utf8(text) && !text.starts_with('\0')) return std::string(text);
  std::string hex(1, '\0');
  for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

[[noreturn]] void fail(const Model& model, std::string_view attribute, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("attribute {}: {}", attribute, problem), model.origin.path.string());
}

std::string decode_text(const Model& model, const std::string& text) {
  if (!text.starts_with('\0')) return text;
  const auto digit = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    fail(model, kVocabulary, "a token's hexadecimal text is broken");
  };
  if (text.size() % 2 == 0) fail(model, kVocabulary, "a token's hexadecimal text is broken");
  std::string bytes;
  for (std::size_t i = 1; i < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<std::pair<std::string_view, float>, 3> kNotFinite = {{{"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", kNan}}};

// JSON has no infinities and no NaN: they travel as text.
Value encode_score(float score) {
  if (std::isfinite(score)) return static_cast<double>(score);
  return std::isnan(score) ? "nan" : score > 0 ? "inf" : "-inf";
}

Attributes vocabulary_to_attributes(const Vocabulary& vocabulary) {
  Value::Array tokens;
  Value::Array scores;
  Value::Array types;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    tokens.emplace_back(encode_text(vocabulary.text(id)));
    scores.push_back(encode_score(vocabulary.score(id)));
    types.emplace_back(static_cast<int>(vocabulary.type(id)));
  }
  Attributes map{{"kind", kind_name(vocabulary.kind)},
                 {"bos_id", vocabulary.bos_id},
                 {"eos_id", vocabulary.eos_id},
                 {"pad_id", vocabulary.pad_id},
                 {"unk_id", vocabulary.unk_id},
                 {"max_length", vocabulary.max_length},
                 {"add_dummy_prefix", vocabulary.add_dummy_prefix},
                 {"remove_extra_whitespaces", vocabulary.remove_extra_whitespaces},
                 {"normalizer", vocabulary.normalizer},
                 {"tokens", std::move(tokens)},
                 {"scores", std::move(scores)},
                 {"types", std::move(types)}};
  if (vocabulary.merges.size() > kMaxMerges) throw Error(ErrorKind::unsupported, fmt::format("the vocabulary has more than {} merges", kMaxMerges));
  if (!vocabulary.merges.empty()) {
    Value::Array merges;
    for (const auto& [left, right] : vocabulary.merges) merges.push_back(Value::Array{encode_text(left), encode_text(right)});
    map.set("merges", std::move(merges));
  }
  return map;
}

class VocabularyReader {
 public:
  VocabularyReader(const Model& model, const Attributes& map) : model_(model), map_(map) {}

  Vocabulary read() const {
    Vocabulary vocabulary;
    vocabulary.kind = kind();
    vocabulary.bos_id = id("bos_id");
    vocabulary.eos_id = id("eos_id");
    vocabulary.pad_id = id("pad_id");
    vocabulary.unk_id = id("unk_id");
    vocabulary.max_length = id("max_length");
    vocabulary.add_dummy_prefix = get<bool>("add_dummy_prefix");
    vocabulary.remove_extra_whitespaces = get<bool>("remove_extra_whitespaces");
    vocabulary.normalizer = get<std::string>("normalizer");
    const auto& tokens = get<Value::Array>("tokens");
    const auto& scores = get<Value::Array>("scores");
    const auto& types = get<Value::Array>("types");
    if (scores.size() != tokens.size() || types.size() != tokens.size()) {
      fail(model_, kVocabulary, fmt::format("{} tokens, {} scores and {} types: expected equal numbers", tokens.size(), scores.size(), types.size()));
    }
    if (tokens.size() > kMaxTokens) fail(model_, kVocabulary, fmt::format("more than {} tokens", kMaxTokens));
    for (std::size_t i = 0; i < tokens.size(); ++i) vocabulary.add(text(tokens[i]), score(scores[i]), type(types[i]));
    if (map_.find("merges") != nullptr) read_merges(vocabulary);
    return vocabulary;
  }

 private:
  template <typename T>
  const T& get(std::string_view key) const {
    const Value* value = map_.find(key);
    const T* typed = value == nullptr ? nullptr : value->get_if<T>();
    if (typed == nullptr) fail(model_, kVocabulary, fmt::format("{} is missing or has the wrong type", key));
    return *typed;
  }

  std::int32_t id(std::string_view key) const {
    const Value* value = map_.find(key);
    if (value != nullptr) {
      const auto* positive = value->get_if<std::uint64_t>();
      if (positive != nullptr && *positive <= INT32_MAX) return static_cast<std::int32_t>(*positive);
      const auto* negative = value->get_if<std::int64_t>();
      if (negative != nullptr && *negative >= INT32_MIN) return static_cast<std::int32_t>(*negative);
    }
    fail(model_, kVocabulary, fmt::format("{}: expected an integer of 32 bits", key));
  }

  VocabularyKind kind() const {
    const std::string& name = get<std::string>("kind");
    if (const TokenKind* row = find_token_kind(name)) return row->kind;
    fail(model_, kVocabulary, fmt::format("kind \"{}\" is not known", name));
  }

  std::string text(const Value& value) const {
    const auto* encoded = value.get_if<std::string>();
    if (encoded == nullptr) fail(model_, kVocabulary, "a token is no text");
    return decode_text(model_, *encoded);
  }

  float score(const Value& value) const {
    if (const auto* number = value.get_if<double>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::uint64_t>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::int64_t>()) return static_cast<float>(*number);
    for (const auto& [text, number] : kNotFinite) {
      if (value == Value(text)) return number;
    }
    fail(model_, kVocabulary, "a score is no number");
  }

  TokenType type(const Value& value) const {
    const auto* number = value.get_if<std::uint64_t>();
    if (number == nullptr || *number > static_cast<std::uint64_t>(TokenType::user_defined)) fail(model_, kVocabulary, "a token type is not known");
    return static_cast<TokenType>(*number);
  }

  void read_merges(Vocabulary& vocabulary) const {
    if (get<Value::Array>("merges").size() > kMaxMerges) fail(model_, kVocabulary, fmt::format("more than {} merges", kMaxMerges));
    for (const Value& item : get<Value::Array>("merges")) {
      const auto* pair = item.get_if<Value::Array>();
      if (pair == nullptr || pair->size() != 2) fail(model_, kVocabulary, "merges: expected pairs of texts");
      vocabulary.merges.emplace_back(text((*pair)[0]), text((*pair)[1]));
    }
  }

  const Model& model_;
  const Attributes& map_;
};

Card card_from(const Model& model, const Attributes& map) {
  const auto text = [&](std::string_view key) -> std::string {
    const Value* value = map.find(key);
    if (value == nullptr) return {};
    const auto* found = value->get_if<std::string>();
    if (found == nullptr) fail(model, kCard, fmt::format("{} is no text", key));
    return *found;
  };
  return {text("model_type"), text("base_model"), text("author"), text("created_at"), text("last_modified"), text("license"), text("uuid")};
}

// The JSON object in a text attribute, which is taken out of the model; nothing when it is not there.
std::optional<Attributes> take_json(Model& model, std::string_view key) {
  const Value* value = model.attributes.find(key);
  if (value == nullptr) return std::nullopt;
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) fail(model, key, "expected JSON text");
  // A vocabulary has three values a token and three a merge.
  const ValueBudget budget = key == kVocabulary ? ValueBudget::for_values(3 * (kMaxTokens + kMaxMerges) + 100) : ValueBudget(text->size());
  Value json = parse_json(*text, fmt::format("{}: attribute {}", model.origin.path.string(), key), budget);
  if (json.get_if<Attributes>() == nullptr) fail(model, key, "expected a JSON object");
  model.attributes.erase(key);
  return std::move(json).take<Attributes>();
}

// JSON would make null of them, which stands for the default.
void require_finite(const Attributes& config) {
  for (const auto& [key, value] : config) {
    const auto* number = value.get_if<double>();
    if (number != nullptr && !std::isfinite(*number))
      throw Error(ErrorKind::unsupported, fmt::format("config: {} is {}, which JSON cannot hold", key, *number));
  }
}

std::string config_text(const Model& model) {
  const Attributes config = whole_config(model);
  require_finite(config);
  std::string text = to_json(config);
  require_readable(reading_cost(config), text.size());
  return text;
}

}  // namespace

Attributes text_attributes(const Model& model) {
  std::vector<Attributes::Entry> entries;
  for (const auto& [key, value] : model.attributes) entries.emplace_back(key, value.get_if<std::string>() != nullptr ? value : Value(to_json(value)));
  Attributes result = Attributes::from_unique(std::move(entries));
  for (const auto& [key, value] : metadata_attributes(model)) result.set(key, value);
  return result;
}

std::vector<std::string> attributes_that_are_no_text(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [key, value] : model.attributes) {
    if (value.get_if<std::string>() == nullptr) names.push_back(key);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const std::size_t count = std::min(names.size(), kMost);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "), count < names.size() ? ", ..." : "");
}

void require_readable(std::uint64_t cost, std::uint64_t text_bytes) {
  if (cost <= max_value_bytes(text_bytes)) return;
  throw Error(ErrorKind::unsupported, "the attributes of the model are too many: Poise would refuse to read the file (docs/limits.md)");
}

Attributes metadata_attributes(const Model& model) {
  Attributes result;
  if (model.card != Card{}) result.set(std::string(kCard), to_json(card_to_attributes(model.card)));
  if (model.config || !model.config_json.empty()) result.set(std::string(kConfig), config_text(model));
  if (model.vocabulary) result.set(std::string(kVocabulary), to_json(vocabulary_to_attributes(*model.vocabulary)));
  return result;
}

void take_text_attributes(Model& model) {
  if (const auto map = take_json(model, kCard)) model.card = card_from(model, *map);
  if (auto map = take_json(model, kConfig)) take_config(model, std::move(*map), model.origin.path.string());
  if (const auto map = take_json(model, kVocabulary)) model.vocabulary = VocabularyReader(model, *map).read();
}

}  // namespace poise
