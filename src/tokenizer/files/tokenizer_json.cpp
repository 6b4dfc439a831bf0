// Reads Hugging Face's tokenizer.json, and vocab.json with merges.txt; files.hpp has the forms. Source: tokenizers/src
// of github.com/huggingface/tokenizers.
#include "tokenizer/files/files.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/platform.hpp"
#include "bytes/text_table.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"
#include "syntax/element_value.hpp"
#include "syntax/fields.hpp"
#include "syntax/json.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {
namespace {

constexpr std::size_t kMaxKeys = 64;

class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(const Source& source) : name_(source.name()) {
    check_vocabulary_size(source);
    text_.emplace(source, 0, static_cast<std::size_t>(source.size()));
  }

  Vocabulary read() {
    std::vector<Attributes::Entry> root;
    walk_json_object(*text_, name_, 0, [&](std::string_view key, JsonValue& value) {
      if (std::ranges::find(root, key, &Attributes::Entry::first) != root.end())
        fail_repeated_key(key, name_, value.position());
      if (root.size() == kMaxKeys) fail(fmt::format("more than {} keys", kMaxKeys), value.position());
      root.emplace_back(key, Value());
      if (key != "model") {
        root.back().second = value.read_tree();
      } else if (!value.visit_members(
                     [this](std::string_view name, JsonValue& field) { read_model_field(name, field); })) {
        fail("model: expected an object", value.position());
      }
    });
    vocabulary_.kind = VocabularyKind::pipeline;
    vocabulary_.add_dummy_prefix = false;
    vocabulary_.pipeline = Attributes::from_unique(std::move(root));
    if (!has_vocab_) fail("model.vocab: expected the tokens", 0);
    set_missing_type();
    fill_vocabulary();
    vocabulary_.pipeline.set("model", std::move(model_));
    return std::move(vocabulary_);
  }

  // Implements read_vocab_and_merges().
  Vocabulary read_with_merges(const Source& merges, const Gpt2Options& options) {
    kind_ = "vocab.json";
    walk_json_object(*text_, name_, 0, [&](std::string_view text, JsonValue& item) {
      read_token(text, item, "expected a token and its id");
    });
    vocabulary_.merges = read_merges(merges);
    Value::Array added = options.added;
    const auto is_listed = [&](std::string_view text) {
      return std::ranges::any_of(options.added, [&](const Value& token) { return *find_named_text(token) == text; });
    };
    std::map<std::string_view, std::uint32_t> ids;  // the ids of special tokens
    for (const Token& token : tokens_) {
      if (const std::string_view text = get_text(token);
          std::ranges::find(options.special, text) != options.special.end())
        ids.emplace(text, token.id);
    }
    for (const std::string& text : options.special) {
      if (const auto found = ids.find(text); found != ids.end() && !is_listed(text))
        added.emplace_back(Attributes{
            {"id", std::uint64_t{found->second}}, {"content", text}, {"normalized", false}, {"special", true}});
    }
    const bool own_regex = options.expression.empty();
    const Attributes bytes{{"type", "ByteLevel"},
                           {"add_prefix_space", options.add_prefix_space},
                           {"trim_offsets", true},
                           {"use_regex", own_regex}};
    Attributes cut = bytes;
    if (!own_regex) {
      const Attributes split{{"type", "Split"},
                             {"pattern", Attributes{{"Regex", options.expression}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
      cut = {{"type", "Sequence"}, {"pretokenizers", Value::Array{split, bytes}}};
    }
    const Value normalizer = options.normalizer.empty() ? Value() : Value(Attributes{{"type", options.normalizer}});
    vocabulary_.kind = VocabularyKind::pipeline;
    vocabulary_.add_dummy_prefix = false;
    vocabulary_.pipeline = {
        {"added_tokens", std::move(added)}, {"normalizer", normalizer}, {"pre_tokenizer", std::move(cut)},
        {"post_processor", nullptr},        {"decoder", bytes},         {"model", nullptr}};
    model_.set("type", "BPE");
    fill_vocabulary();
    vocabulary_.pipeline.set("model", std::move(model_));
    return std::move(vocabulary_);
  }

 private:
  struct Token {
    std::uint32_t begin;  // where the token's text begins in texts_
    std::uint32_t length;
    std::uint32_t id;
    std::uint32_t position;  // the position in the file
  };
  static constexpr std::uint32_t kAddedOnly = UINT32_MAX;  // not an index into tokens_: model.vocab lacks the id
  std::string_view get_text(const Token& token) const {
    return std::string_view(texts_).substr(token.begin, token.length);
  }

  [[noreturn]] void fail(std::string_view problem, std::uint64_t offset) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", kind_, problem), name_, offset);
  }

  void read_model_field(std::string_view key, JsonValue& value) {
    if (key == "vocab") return read_vocab(value);
    if (key != "merges") return model_.set(std::string(key), value.read_tree());
    has_merges_ = true;
    const std::size_t left = count_bytes_left(value);
    vocabulary_.merges.reserve(std::min(kMaxMerges, left / kUsualBytes), left);
    if (!value.visit_items([this](JsonValue& item) { read_merge(item); }))
      fail("model.merges: expected a list", value.position());
  }

  // Returns the number of bytes in the file from a value on. This bounds how many items to reserve; reserved memory
  // that is not used costs no time.
  std::size_t count_bytes_left(const JsonValue& value) const {
    return text_->text().size() - static_cast<std::size_t>(value.position());
  }
  static constexpr std::size_t kUsualBytes = 16;  // the usual bytes of a token and its id, or of a merge

  // Reads {"token": id}, or [["token", score]].
  void read_vocab(JsonValue& value) {
    has_vocab_ = true;
    tokens_.reserve(std::min(kMaxTokens, count_bytes_left(value) / kUsualBytes));
    texts_.reserve(count_bytes_left(value));
    advise_huge_pages(tokens_);
    advise_huge_pages(texts_);
    const bool by_id = value.visit_members_unchecked([this](std::string_view text, JsonValue& item) {
      read_token(text, item, "model.vocab: expected a token and its id");
    });
    if (by_id) return;
    scored_ = value.visit_items([this](JsonValue& item) {
      const std::uint64_t position = item.position();
      std::optional<std::string_view> text;
      std::optional<double> score;
      std::size_t count = 0;
      const bool pair = item.visit_items([&](JsonValue& part) {
        if (count == 0) text = part.read_text();
        if (count == 1) {
          const Value tree = part.read_tree();
          score = convert_to_double(&tree);
        }
        ++count;
      });
      if (!pair || count != 2 || !text || !score) fail("model.vocab: expected a token and its score", position);
      add_token(*text, tokens_.size(), position);
      scores_.push_back(*score);
    });
    if (!scored_) fail("model.vocab: expected the tokens", value.position());
  }

  void read_token(std::string_view text, JsonValue& item, std::string_view problem) {
    const auto id = item.read_unsigned();
    if (!id) fail(problem, item.position());
    add_token(text, *id, item.position());
  }

  void add_token(std::string_view text, std::uint64_t id, std::uint64_t position) {
    static_assert(kMaxTokenizerFileBytes <= UINT32_MAX && kMaxTokens <= UINT32_MAX);
    if (tokens_.size() == kMaxTokens) fail(fmt::format("model.vocab: more than {} tokens", kMaxTokens), position);
    if (id >= kMaxTokens) fail_id(id);
    tokens_.push_back({static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(text.size()),
                       static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(position)});
    texts_ += text;
  }

  [[noreturn]] void fail_id(std::uint64_t id) const {
    fail(fmt::format("an id is {}, at most {} tokens are allowed", id, kMaxTokens), 0);
  }

  // Reads "a b", or ["a", "b"].
  void read_merge(JsonValue& item) {
    auto& merges = vocabulary_.merges;
    const std::uint64_t position = item.position();
    if (merges.size() == kMaxMerges) fail(fmt::format("model.merges: more than {} merges", kMaxMerges), position);
    if (const auto line = item.read_text()) {
      if (line->starts_with("#version")) return;  // a comment of merges.txt, which the library skips only in this form
      const std::size_t space = std::min(line->find(' '), line->size());
      if (space == line->size() || line->find(' ', space + 1) != std::string_view::npos) {
        fail("model.merges: expected two tokens with a space between them", position);
      }
      merges.emplace_back(line->substr(0, space), line->substr(space + 1));
      return;
    }
    std::optional<std::string_view> left;
    std::optional<std::string_view> right;
    std::size_t count = 0;
    const bool list = item.visit_items([&](JsonValue& part) {
      if (count < 2) (count == 0 ? left : right) = part.read_text();
      ++count;
    });
    if (!list || count != 2 || !left || !right) fail("model.merges: expected two tokens", position);
    merges.emplace_back(*left, *right);
  }

  // Sets the model's type by its other fields, because old files do not state it.
  void set_missing_type() {
    if (const Value* type = model_.find("type"); type != nullptr && *type != Value()) return;
    const char* name = "WordLevel";
    if (scored_) {
      name = "Unigram";
    } else if (has_merges_) {
      name = "BPE";
    } else if (model_.find("max_input_chars_per_word") != nullptr ||
               model_.find("continuing_subword_prefix") != nullptr) {
      name = "WordPiece";
    }
    model_.set("type", name);
  }

  struct Added {
    std::uint64_t id;
    std::string_view text;
    bool special;
  };

  std::vector<Added> read_added_tokens() const {
    std::vector<Added> added;
    const Value* value = vocabulary_.pipeline.find("added_tokens");
    if (value == nullptr || *value == Value()) return added;
    const auto* list = value->get_if<Value::Array>();
    if (list == nullptr) fail("added_tokens: expected a list", 0);
    if (list->size() > kMaxTokens) fail(fmt::format("added_tokens: more than {} tokens", kMaxTokens), 0);
    for (const Value& item : *list) {
      const auto* number = get_member<std::uint64_t>(item, "id");
      const auto* text = get_member<std::string>(item, "content");
      if (text == nullptr || number == nullptr) fail("added_tokens: expected \"id\" and \"content\"", 0);
      added.push_back({*number, *text, read_flag(*item.get_if<Attributes>(), "special", false)});
    }
    return added;
  }

  // Adds the tokens to the vocabulary, by id, and throws if their ids or texts are not valid.
  void fill_vocabulary() {
    const std::vector<Added> added = read_added_tokens();
    std::uint64_t size = 0;
    for (const Token& token : tokens_) size = std::max<std::uint64_t>(size, token.id + 1);
    for (const Added& token : added) {
      if (token.id >= kMaxTokens) fail_id(token.id);
      size = std::max(size, token.id + 1);
    }
    if (!is_dense(size, tokens_.size() + added.size()))
      fail(fmt::format("the id {} is far larger than the number of tokens", size - 1), 0);
    std::vector<std::uint32_t> by_id(size, kAddedOnly);
    std::size_t bytes = texts_.size();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      std::uint32_t& place = by_id[tokens_[i].id];
      if (place != kAddedOnly) fail(fmt::format("model.vocab: two tokens have the id {}", tokens_[i].id), 0);
      place = static_cast<std::uint32_t>(i);
    }
    std::vector<const Added*> added_by_id(size);
    for (const Added& token : added) {
      added_by_id[token.id] = &token;
      bytes += token.text.size();
    }
    vocabulary_.reserve(size, bytes);
    Value::Array added_only;
    const bool byte_fallback = read_flag(model_, "byte_fallback", false);
    for (std::uint64_t id = 0; id < size; ++id) {
      const Added* also = added_by_id[id];
      const TokenType type = also == nullptr ? TokenType::normal
                             : also->special ? TokenType::control
                                             : TokenType::user_defined;
      if (by_id[id] != kAddedOnly) {
        const std::string_view text = get_text(tokens_[by_id[id]]);
        const bool byte = byte_fallback && type == TokenType::normal && parse_byte_piece(text);
        vocabulary_.add(text, scored_ ? static_cast<float>(scores_[by_id[id]]) : 0.0F, byte ? TokenType::byte : type);
        continue;
      }
      vocabulary_.add(also == nullptr ? std::string_view() : also->text, 0, also == nullptr ? TokenType::unused : type);
      added_only.emplace_back(id);
    }
    index_texts(by_id);
    if (!added_only.empty()) model_.set("added_only", std::move(added_only));
    keep_wide_scores();
    set_unknown_id();
  }

  // Makes the table in which a tokenizer looks up tokens, and uses it to check that model.vocab repeats no key.
  void index_texts(const std::vector<std::uint32_t>& by_id) {
    auto texts = std::make_shared<const TokenTexts>(vocabulary_);
    KeySet twice;  // texts of the model's tokens that an added token has, too
    for (const auto& [id, first] : texts->duplicates()) {
      if (scored_) break;  // a list with scores may have duplicates
      const std::uint32_t here = by_id[static_cast<std::size_t>(id)];
      const std::uint32_t before = by_id[static_cast<std::size_t>(first)];
      const std::string_view text = vocabulary_.text(static_cast<std::size_t>(id));
      if (here == kAddedOnly || (before == kAddedOnly && twice.insert(text))) continue;
      fail_repeated_key(text, name_, tokens_[before == kAddedOnly ? here : std::max(here, before)].position);
    }
    TokenTexts::set(vocabulary_, std::move(texts));
  }

  // Keeps scores in the model if float32, the type of a vocabulary's scores, cannot hold them.
  void keep_wide_scores() {
    const auto fits_float32 = [](double score) { return static_cast<double>(static_cast<float>(score)) == score; };
    if (std::ranges::all_of(scores_, fits_float32)) return;
    Value::Array scores;
    for (const double score : scores_) scores.emplace_back(score);
    model_.set("scores", std::move(scores));
  }

  void set_unknown_id() {
    const auto* id = model_.get_if<std::uint64_t>("unk_id");
    if (id != nullptr && *id < vocabulary_.size()) vocabulary_.unk_id = static_cast<std::int32_t>(*id);
    const auto* text = model_.get_if<std::string>("unk_token");
    if (text == nullptr) return;
    if (vocabulary_.unk_id < 0)
      vocabulary_.unk_id = TokenTexts::get(vocabulary_)->find(vocabulary_, *text).value_or(-1);
  }

  std::string_view kind_ = "tokenizer.json";
  std::string name_;
  std::optional<JsonText> text_;
  std::string texts_;  // the texts of the tokens, in the order of the file
  std::vector<Token> tokens_;
  std::vector<double> scores_;  // the scores, if tokens are listed with scores
  bool has_vocab_ = false;
  bool has_merges_ = false;
  bool scored_ = false;  // true if tokens are listed with scores
  Attributes model_;
  Vocabulary vocabulary_;
};

}  // namespace

void check_vocabulary_size(const Source& source) {
  if (source.size() > kMaxTokenizerFileBytes)
    throw Error(ErrorKind::invalid_file,
                fmt::format("the file has {} bytes, at most {} are read", source.size(), kMaxTokenizerFileBytes),
                source.name());
}

Vocabulary read_tokenizer_json(const Source& source) { return TokenizerJsonReader(source).read(); }

bool looks_like_tokenizer_json(const Source& source) {
  constexpr std::uint64_t kStart = 4096;  // the library puts the long parts last
  const std::string start = read_text(source, std::min(source.size(), kStart));
  const auto has = [&](std::string_view key) { return start.find(key) != std::string::npos; };
  if (!start.starts_with('{')) return false;
  return has("\"added_tokens\"") || (has("\"model\"") && (has("\"vocab\"") || has("\"merges\"")));
}

Vocabulary read_vocab_and_merges(const Source& vocab, const Source& merges, const Gpt2Options& options) {
  return TokenizerJsonReader(vocab).read_with_merges(merges, options);
}

void apply_tokenizer_config(Vocabulary& vocabulary, const Attributes& config) {
  for (const NamedToken& named : kNamedTokens) {
    const std::string* text = find_named_text(config, named.key);
    const std::int32_t id = text == nullptr ? -1 : find_first_id(vocabulary, *text);
    if (id >= 0) vocabulary.*named.id = id;
  }
  if (const Value* chat_template = config.find("chat_template")) vocabulary.chat_template = *chat_template;
}

}  // namespace poise
