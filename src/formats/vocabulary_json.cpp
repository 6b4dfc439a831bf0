#include "formats/vocabulary_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "formats/metadata.hpp"
#include "model/limits.hpp"
#include "syntax/json.hpp"
#include "syntax/json_writer.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

// Tokens are byte strings: invalid UTF-8 is stored as lower-case hex after a NUL, with which no token text begins.
std::string encode_text(std::string_view text) {
  if (is_utf8(text) && !text.starts_with('\0')) return std::string(text);
  std::string hex(1, '\0');
  for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// Nothing for a broken text.
std::optional<std::string> decode_text(std::string_view text) {
  if (!text.starts_with('\0')) return std::string(text);
  if (text.size() % 2 == 0) return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string bytes;
  for (std::size_t i = 1; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<std::pair<std::string_view, float>, 3> kNotFinite = {
    {{"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", kNan}}};

// JSON has no infinities and no NaN: they are stored as text.
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
  if (vocabulary.merges.size() > kMaxMerges)
    throw Error(ErrorKind::unsupported, fmt::format("the vocabulary has more than {} merges", kMaxMerges));
  if (!vocabulary.merges.empty()) {
    Value::Array merges;
    for (const auto& [left, right] : vocabulary.merges)
      merges.push_back(Value::Array{encode_text(left), encode_text(right)});
    map.set("merges", std::move(merges));
  }
  require_finite(vocabulary.pipeline, "vocabulary");
  require_finite(vocabulary.tokenizer_config, "tokenizer_config.json");
  if (!vocabulary.pipeline.empty()) map.set("pipeline", vocabulary.pipeline);
  if (vocabulary.chat_template != Value()) map.set("chat_template", vocabulary.chat_template);
  if (!vocabulary.tokenizer_config.empty()) map.set("tokenizer_config", vocabulary.tokenizer_config);
  if (!vocabulary.files.empty()) map.set("files", vocabulary.files);
  return map;
}

// Reads tokens, scores, types and merges while the text is parsed: as values they would take many times its size.
class VocabularyJsonReader {
 public:
  VocabularyJsonReader(std::string_view attribute, std::string path) : attribute_(attribute), path_(std::move(path)) {}

  Vocabulary read(std::string_view json) {
    const std::string name = fmt::format("{}: attribute {}", path_, attribute_);
    std::vector<Attributes::Entry> fields;
    walk_json_object(JsonText(json), name, 0, [&](std::string_view key, JsonValue& value) {
      if (std::ranges::find(fields, key, &Attributes::Entry::first) != fields.end())
        fail_repeated_key(key, name, value.position());
      if (fields.size() == kMaxKeys) fail("too many keys");
      const auto* list = std::ranges::find(kLists, key, &List::key);
      fields.emplace_back(key, Value(Value::Array()));
      if (list == kLists.end() || !value.items([&](JsonValue& item) { (this->*list->add)(item); }))
        fields.back().second = value.tree();
    });
    map_ = Attributes::from_unique(std::move(fields));
    read_fields();
    for (const std::string_view list : {"tokens", "scores", "types"}) (void)get<Value::Array>(list);
    if (map_.find("merges") != nullptr) (void)get<Value::Array>("merges");
    if (scores_.size() != ends_.size() || types_.size() != ends_.size()) {
      fail(fmt::format("{} tokens, {} scores and {} types: expected equal numbers", ends_.size(), scores_.size(),
                       types_.size()));
    }
    vocabulary_.reserve(ends_.size(), texts_.size());
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      vocabulary_.add(std::string_view(texts_).substr(begin, ends_[i] - begin), scores_[i], types_[i]);
      begin = ends_[i];
    }
    return std::move(vocabulary_);
  }

 private:
  void read_fields() {
    vocabulary_.kind = kind();
    vocabulary_.bos_id = id("bos_id");
    vocabulary_.eos_id = id("eos_id");
    vocabulary_.pad_id = id("pad_id");
    vocabulary_.unk_id = id("unk_id");
    vocabulary_.max_length = id("max_length");
    vocabulary_.add_dummy_prefix = get<bool>("add_dummy_prefix");
    vocabulary_.remove_extra_whitespaces = get<bool>("remove_extra_whitespaces");
    vocabulary_.normalizer = get<std::string>("normalizer");
    if (map_.find("tokenizer_config") != nullptr) vocabulary_.tokenizer_config = get<Attributes>("tokenizer_config");
    if (map_.find("files") != nullptr) {
      vocabulary_.files = get<Attributes>("files");
      if (const std::string problem = problem_with_files(vocabulary_.files); !problem.empty())
        fail(fmt::format("files: {}", problem));
    }
    if (map_.find("pipeline") != nullptr) vocabulary_.pipeline = get<Attributes>("pipeline");
    if (const Value* chat_template = map_.find("chat_template")) vocabulary_.chat_template = *chat_template;
  }

  template <typename T>
  const T& get(std::string_view key) const {
    const Value* value = map_.find(key);
    const T* typed = value == nullptr ? nullptr : value->get_if<T>();
    if (typed == nullptr) fail(fmt::format("{} is missing or has the wrong type", key));
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
    fail(fmt::format("{}: expected an integer of 32 bits", key));
  }

  VocabularyKind kind() const {
    const std::string& name = get<std::string>("kind");
    if (const TokenKind* row = find_token_kind(name)) return row->kind;
    fail(fmt::format("kind \"{}\" is not known", name));
  }

  std::string text(JsonValue& item) const {
    const auto encoded = item.text();
    if (!encoded) fail("a token is not text");
    if (auto decoded = decode_text(*encoded)) return *std::move(decoded);
    fail("a token's hexadecimal text is broken");
  }

  // A list, and the reader of its items.
  struct List {
    std::string_view key;
    void (VocabularyJsonReader::*add)(JsonValue& item);
  };
  static const std::array<List, 4> kLists;
  static constexpr std::size_t kMaxKeys = 64;

  void add_score(JsonValue& item) { scores_.push_back(score(item.tree())); }
  void add_type(JsonValue& item) { types_.push_back(type(item.tree())); }

  void add_token(JsonValue& item) {
    if (ends_.size() == kMaxTokens) fail(fmt::format("more than {} tokens", kMaxTokens));
    texts_ += text(item);
    ends_.push_back(texts_.size());
  }

  float score(const Value& value) const {
    if (const auto* number = value.get_if<double>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::uint64_t>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::int64_t>()) return static_cast<float>(*number);
    for (const auto& [text, number] : kNotFinite) {
      if (value == Value(text)) return number;
    }
    fail("a score is not a number");
  }

  TokenType type(const Value& value) const {
    const auto* number = value.get_if<std::uint64_t>();
    if (number == nullptr || *number > static_cast<std::uint64_t>(TokenType::user_defined))
      fail("a token type is not known");
    return static_cast<TokenType>(*number);
  }

  void add_merge(JsonValue& item) {
    if (vocabulary_.merges.size() == kMaxMerges) fail(fmt::format("more than {} merges", kMaxMerges));
    std::array<std::string, 2> parts;
    std::size_t count = 0;
    const bool list = item.items([&](JsonValue& part) {
      if (count < parts.size()) parts[count] = text(part);
      ++count;
    });
    if (!list || count != parts.size()) fail("merges: expected pairs of texts");
    vocabulary_.merges.emplace_back(parts[0], parts[1]);
  }

  [[noreturn]] void fail(std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("attribute {}: {}", attribute_, problem), path_);
  }

  std::string_view attribute_;
  std::string path_;
  Attributes map_;  // lists are empty in it
  Vocabulary vocabulary_;
  std::string texts_;  // of all tokens
  std::vector<std::size_t> ends_;
  std::vector<float> scores_;
  std::vector<TokenType> types_;
};

const std::array<VocabularyJsonReader::List, 4> VocabularyJsonReader::kLists = {
    {{"tokens", &VocabularyJsonReader::add_token},
     {"scores", &VocabularyJsonReader::add_score},
     {"types", &VocabularyJsonReader::add_type},
     {"merges", &VocabularyJsonReader::add_merge}}};

}  // namespace

std::string vocabulary_json(const Vocabulary& vocabulary) { return to_json(vocabulary_to_attributes(vocabulary)); }

Vocabulary parse_vocabulary_json(std::string_view json, std::string_view attribute, const std::string& path) {
  return VocabularyJsonReader(attribute, path).read(json);
}

}  // namespace poise
