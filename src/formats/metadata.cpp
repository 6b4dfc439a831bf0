#include "formats/metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "model/limits.hpp"
#include "syntax/json.hpp"
#include "syntax/json_writer.hpp"
#include "syntax/value_budget.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

constexpr std::string_view kCard = "poise.card";
constexpr std::string_view kConfig = "poise.config";
constexpr std::string_view kVocabulary = "poise.vocabulary";

[[noreturn]] void fail(const Model& model, std::string_view attribute, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("attribute {}: {}", attribute, problem), model.origin.path.string());
}

Card parse_card_fields(const Model& model, const Attributes& map) {
  const auto read_text = [&](std::string_view key) {
    const auto* found = map.get_if<std::string>(key);
    if (found == nullptr && map.find(key) != nullptr) fail(model, kCard, fmt::format("{} is not text", key));
    return found == nullptr ? std::string() : *found;
  };
  return {read_text("model_type"),    read_text("base_model"), read_text("author"), read_text("created_at"),
          read_text("last_modified"), read_text("license"),    read_text("uuid")};
}

// Returns Poise's attribute with that key, or null if it is missing. Throws if it is not text.
const std::string* find_poise_attribute(const Model& model, std::string_view key) {
  const Value* value = model.attributes.find(key);
  if (value == nullptr) return nullptr;
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) fail(model, key, "expected JSON text");
  return text;
}

std::string format_attribute_place(const Model& model, std::string_view key) {
  return fmt::format("{}: attribute {}", model.origin.path.string(), key);
}

// Returns the first number in a value that is infinite or NaN.
std::optional<double> find_number_beyond_json(const Value& value) {
  if (const auto* number = value.get_if<double>(); number != nullptr && !std::isfinite(*number)) return *number;
  const auto find_first = [](const auto& items, const auto& value_of) -> std::optional<double> {
    for (const auto& item : items) {
      if (const auto number = find_number_beyond_json(value_of(item))) return number;
    }
    return std::nullopt;
  };
  const auto second = [](const auto& entry) -> const Value& { return entry.second; };
  if (const auto* array = value.get_if<Value::Array>())
    return find_first(*array, [](const Value& item) -> const Value& { return item; });
  if (const auto* map = value.get_if<Attributes>()) return find_first(*map, second);
  const auto* pairs = value.get_if<Value::Pairs>();
  if (pairs == nullptr) return std::nullopt;
  const auto key = find_first(*pairs, [](const auto& entry) -> const Value& { return entry.first; });
  return key ? key : find_first(*pairs, second);
}

// Removes a text attribute from the model, and returns the JSON object in it; std::nullopt if it is missing.
std::optional<Attributes> parse_json_attribute(Model& model, std::string_view key) {
  const std::string* text = find_poise_attribute(model, key);
  if (text == nullptr) return std::nullopt;
  Value json = parse_json(*text, format_attribute_place(model, key));
  if (json.get_if<Attributes>() == nullptr) fail(model, key, "expected a JSON object");
  model.attributes.erase(key);
  return std::move(json).take<Attributes>();
}

}  // namespace

// Without this check, to_json() would write NaN and infinities as null, which readers take as the default.
void require_finite(const Attributes& map, std::string_view what) {
  for (const auto& [key, value] : map) {
    if (const auto number = find_number_beyond_json(value))
      throw Error(ErrorKind::unsupported, fmt::format("{}: {} is {}, which JSON cannot hold", what, key, *number));
  }
}

std::optional<Value> parse_json_list(std::string_view text) {
  try {
    Value value = parse_json(text, "");
    return value.get_if<Value::Array>() == nullptr ? std::nullopt : std::optional(std::move(value));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> apply_changes(const AttributeChanges& changes, FunctionRef<bool(const std::string&)> erase,
                                       FunctionRef<bool(const std::string&, const Value&)> set) {
  const auto refuse = [](const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); };
  if (changes.set.empty() && changes.erase.empty()) refuse("expected an attribute to set or delete, found none");
  std::set<std::string_view> seen;
  const auto require_once = [&](const std::string& key) {
    if (!seen.insert(key).second) refuse(fmt::format("the attribute \"{}\" is given twice, expected one change", key));
  };
  for (const std::string& key : changes.erase) {
    require_once(key);
    if (!erase(key)) refuse(fmt::format("there is no attribute \"{}\"", key));
  }
  std::vector<std::string> added;
  for (const auto& [key, value] : changes.set) {
    require_once(key);
    if (set(key, value)) added.push_back(key);
  }
  return added;
}

Attributes make_text_attributes(const Attributes& attributes) {
  std::vector<Attributes::Entry> entries;
  for (const auto& [key, value] : attributes)
    entries.emplace_back(key, value.get_if<std::string>() != nullptr ? value : Value(format_python_json(value)));
  return Attributes::from_unique(std::move(entries));
}

DescribedVocabulary make_described_vocabulary(const Model& model) {
  DescribedVocabulary described{std::nullopt, model.attributes, {}};
  if (model.vocabulary) return described;
  try {
    described.made = make_vocabulary(model);
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

std::string describe_text_loss(const DescribedVocabulary& described, std::string_view format) {
  if (!described.problem.empty()) {
    return fmt::format(
        "{} holds text attributes only: the attributes with the vocabulary become text, and programs cannot make a "
        "tokenizer of it ({})",
        format, described.problem);
  }
  return described.made
             ? fmt::format("{} holds text attributes only: the attributes with the vocabulary become the attribute {}",
                           format, kVocabulary)
             : std::string();
}

Attributes make_text_attributes(const Model& model) {
  const DescribedVocabulary described = make_described_vocabulary(model);
  Attributes result = make_text_attributes(described.attributes);
  for (const auto& [key, value] : make_metadata_attributes(model)) result.set(key, value);
  if (described.made) result.set(std::string(kVocabulary), make_vocabulary_json(*described.made));
  return result;
}

std::string describe_text_loss(const Attributes& attributes, std::string_view format) {
  std::vector<std::string> names;
  for (const auto& [key, value] : attributes) {
    if (value.get_if<std::string>() == nullptr) names.push_back(key);
  }
  return names.empty()
             ? std::string()
             : fmt::format("{} holds text attributes only: {}", format, describe_json_texts(attributes, names));
}

std::string describe_json_texts(const Attributes& attributes, const std::vector<std::string>& names) {
  const std::set<std::string_view> named(names.begin(), names.end());  // Attributes::find() would be linear
  std::vector<std::string> beyond;
  for (const auto& [key, value] : attributes) {
    if (named.contains(key) && find_number_beyond_json(value)) beyond.push_back(key);
  }
  return fmt::format("{} {} JSON text{}", fmt::join(names, ", "), names.size() == 1 ? "becomes" : "become",
                     beyond.empty() ? std::string()
                                    : fmt::format(", in which {} {} NaN or Infinity, as Python spells them",
                                                  list_names(beyond), beyond.size() == 1 ? "has" : "have"));
}

void require_readable(std::uint64_t cost, std::uint64_t text_bytes) {
  if (cost <= compute_value_limit(text_bytes)) return;
  throw Error(ErrorKind::unsupported,
              "the model has too many attributes: Poise could not read the file (docs/limits.md); delete some of them");
}

std::string make_config_text(const Model& model) {
  const Attributes config = whole_config(model);
  require_finite(config);
  std::string text = to_json(config);
  require_readable(measure_cost(config), text.size());
  return text;
}

Attributes make_metadata_attributes(const Model& model) {
  Attributes result;
  if (auto card = make_card_text(model.card)) result.set(std::string(kCard), *std::move(card));
  if (model.config || !model.config_json.empty()) result.set(std::string(kConfig), make_config_text(model));
  if (model.vocabulary) result.set(std::string(kVocabulary), make_vocabulary_json(*model.vocabulary));
  return result;
}

std::optional<std::string> make_card_text(const Card& card) {
  return card == Card{} ? std::nullopt : std::optional(to_json(card_to_attributes(card)));
}

std::optional<Card> parse_card(Model& model) {
  const auto map = parse_json_attribute(model, kCard);
  return map ? std::optional(parse_card_fields(model, *map)) : std::nullopt;
}

void parse_text_attributes(Model& model) {
  if (auto card = parse_card(model)) model.card = *std::move(card);
  if (auto map = parse_json_attribute(model, kConfig)) parse_config(model, std::move(*map), model.origin.path.string());
  if (const std::string* text = find_poise_attribute(model, kVocabulary)) {
    model.vocabulary = parse_vocabulary_json(*text, kVocabulary, model.origin.path.string());
    model.attributes.erase(kVocabulary);
  }
}

namespace {

// Encodes a token, which may be any bytes. A token that is not UTF-8 or begins with a NUL becomes a NUL and lower-case
// hexadecimal digits.
std::string encode_text(std::string_view text) {
  if (is_utf8(text) && !text.starts_with('\0')) return std::string(text);
  std::string hex(1, '\0');
  for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// Reverses encode_text(). Returns std::nullopt for a NUL that pairs of lower-case hexadecimal digits do not follow.
std::optional<std::string> decode_text(std::string_view text) {
  if (!text.starts_with('\0')) return std::string(text);
  if (text.size() % 2 == 0) return std::nullopt;
  const auto parse_digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  for (std::size_t i = 1; i < text.size(); i += 2) {
    const int high = parse_digit(text[i]);
    const int low = parse_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<std::pair<std::string_view, float>, 3> kNotFinite = {
    {{"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", kNan}}};

// Encodes a score. Infinities and NaN become text, because JSON lacks them.
Value encode_score(float score) {
  if (std::isfinite(score)) return static_cast<double>(score);
  return std::isnan(score) ? "nan" : score > 0 ? "inf" : "-inf";
}

Attributes make_vocabulary_attributes(const Vocabulary& vocabulary) {
  Value::Array tokens;
  Value::Array scores;
  Value::Array types;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    tokens.emplace_back(encode_text(vocabulary.text(id)));
    scores.push_back(encode_score(vocabulary.score(id)));
    types.emplace_back(static_cast<int>(vocabulary.type(id)));
  }
  Attributes map{{"kind", get_kind_name(vocabulary.kind)},
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

// Reads tokens, scores, types and merges while it parses the text. A tree of these values would take many times the
// memory.
class VocabularyJsonReader {
 public:
  VocabularyJsonReader(std::string_view attribute, std::string path) : attribute_(attribute), path_(std::move(path)) {}

  Vocabulary read(std::string_view json) {
    const std::string name = fmt::format("{}: attribute {}", path_, attribute_);
    std::vector<Attributes::Entry> fields;
    walk_json_object(JsonText(json), name, 0, [&](std::string_view key, JsonValue& value) {
      if (std::ranges::find(fields, key, &Attributes::Entry::first) != fields.end())
        fail_repeated_key(key, name, value.position());
      if (fields.size() == kMaxKeys) fail(fmt::format("more than {} keys", kMaxKeys));
      const auto* list = std::ranges::find(kLists, key, &List::key);
      fields.emplace_back(key, Value(Value::Array()));
      if (list == kLists.end() || !value.visit_items([&](JsonValue& item) { (this->*list->add)(item); }))
        fields.back().second = value.read_tree();
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
    vocabulary_.kind = read_kind();
    vocabulary_.bos_id = read_id("bos_id");
    vocabulary_.eos_id = read_id("eos_id");
    vocabulary_.pad_id = read_id("pad_id");
    vocabulary_.unk_id = read_id("unk_id");
    vocabulary_.max_length = read_id("max_length");
    vocabulary_.add_dummy_prefix = get<bool>("add_dummy_prefix");
    vocabulary_.remove_extra_whitespaces = get<bool>("remove_extra_whitespaces");
    vocabulary_.normalizer = get<std::string>("normalizer");
    if (map_.find("tokenizer_config") != nullptr) vocabulary_.tokenizer_config = get<Attributes>("tokenizer_config");
    if (map_.find("files") != nullptr) {
      vocabulary_.files = get<Attributes>("files");
      if (const std::string problem = find_problem_with_files(vocabulary_.files); !problem.empty())
        fail(fmt::format("files: {}", problem));
    }
    if (map_.find("pipeline") != nullptr) vocabulary_.pipeline = get<Attributes>("pipeline");
    if (const Value* chat_template = map_.find("chat_template")) vocabulary_.chat_template = *chat_template;
  }

  template <typename T>
  const T& get(std::string_view key) const {
    const T* typed = map_.get_if<T>(key);
    if (typed == nullptr) fail(fmt::format("{} is missing or has the wrong type", key));
    return *typed;
  }

  std::int32_t read_id(std::string_view key) const {
    const Value* value = map_.find(key);
    if (value != nullptr) {
      const auto* positive = value->get_if<std::uint64_t>();
      if (positive != nullptr && *positive <= INT32_MAX) return static_cast<std::int32_t>(*positive);
      const auto* negative = value->get_if<std::int64_t>();
      if (negative != nullptr && *negative >= INT32_MIN) return static_cast<std::int32_t>(*negative);
    }
    fail(fmt::format("{}: expected an integer of 32 bits", key));
  }

  VocabularyKind read_kind() const {
    const std::string& name = get<std::string>("kind");
    if (const VocabularyKindRow* row = find_kind_row(name)) return row->kind;
    fail(fmt::format("kind \"{}\" is not known", name));
  }

  // `index` is the item's place in the list.
  std::string read_text(JsonValue& item, std::string_view list, std::size_t index) const {
    const auto encoded = item.read_text();
    if (!encoded) fail(fmt::format("{}: item {}: expected text", list, index));
    if (auto decoded = decode_text(*encoded)) return *std::move(decoded);
    fail(fmt::format("{}: item {}: expected pairs of hexadecimal digits after the NUL", list, index));
  }

  // Holds the key of a list, and the function that adds an item of the list to the vocabulary.
  struct List {
    std::string_view key;
    void (VocabularyJsonReader::*add)(JsonValue& item);
  };
  static const std::array<List, 4> kLists;
  static constexpr std::size_t kMaxKeys = 64;

  void add_score(JsonValue& item) { scores_.push_back(parse_score(item.read_tree())); }
  void add_type(JsonValue& item) { types_.push_back(parse_type(item.read_tree())); }

  void add_token(JsonValue& item) {
    if (ends_.size() == kMaxTokens) fail(fmt::format("more than {} tokens", kMaxTokens));
    texts_ += read_text(item, "tokens", ends_.size());
    ends_.push_back(texts_.size());
  }

  float parse_score(const Value& value) const {
    if (const auto* number = value.get_if<double>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::uint64_t>()) return static_cast<float>(*number);
    if (const auto* number = value.get_if<std::int64_t>()) return static_cast<float>(*number);
    for (const auto& [text, number] : kNotFinite) {
      if (value == Value(text)) return number;
    }
    fail(fmt::format("scores: item {}: expected a number", scores_.size()));
  }

  TokenType parse_type(const Value& value) const {
    const auto* number = value.get_if<std::uint64_t>();
    if (number == nullptr || *number > static_cast<std::uint64_t>(TokenType::user_defined))
      fail(fmt::format("types: item {}: expected a number from 0 to {}", types_.size(),
                       static_cast<int>(TokenType::user_defined)));
    return static_cast<TokenType>(*number);
  }

  void add_merge(JsonValue& item) {
    if (vocabulary_.merges.size() == kMaxMerges) fail(fmt::format("more than {} merges", kMaxMerges));
    std::array<std::string, 2> parts;
    std::size_t count = 0;
    const bool list = item.visit_items([&](JsonValue& part) {
      if (count < parts.size()) parts[count] = read_text(part, "merges", vocabulary_.merges.size());
      ++count;
    });
    if (!list || count != parts.size())
      fail(fmt::format("merges: item {}: expected a pair of texts", vocabulary_.merges.size()));
    vocabulary_.merges.emplace_back(parts[0], parts[1]);
  }

  [[noreturn]] void fail(std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("attribute {}: {}", attribute_, problem), path_);
  }

  std::string_view attribute_;
  std::string path_;
  Attributes map_;  // all members; the lists are empty here
  Vocabulary vocabulary_;
  std::string texts_;  // the texts of all tokens, one after the other
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

std::string make_vocabulary_json(const Vocabulary& vocabulary) {
  return to_json(make_vocabulary_attributes(vocabulary));
}

Vocabulary parse_vocabulary_json(std::string_view json, std::string_view attribute, const std::string& path) {
  return VocabularyJsonReader(attribute, path).read(json);
}

}  // namespace poise
