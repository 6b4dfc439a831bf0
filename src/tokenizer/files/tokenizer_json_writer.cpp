#include "tokenizer/files/files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "model/limits.hpp"
#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/merges.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/kept_files.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"

namespace poise {
namespace {

// The file has these fields, in this order. It cannot hold other entries of a pipeline.
constexpr std::array<std::string_view, 9> kFields = {"version",        "truncation", "padding",
                                                     "added_tokens",   "normalizer", "pre_tokenizer",
                                                     "post_processor", "decoder",    "model"};

// These entries of a model are Poise's own. The file expresses them by its tokens and merges.
constexpr std::array<std::string_view, 4> kOwn = {"added_only", "scores", "merge_by_score", "skip_unknown_merges"};

const Value kNull;

const Value& find_or_null(const Attributes& map, std::string_view key) {
  const Value* value = map.find(key);
  return value == nullptr ? kNull : *value;
}

Attributes make_added_token(const AddedToken& token) {
  return {{"id", std::int64_t{token.id}}, {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},       {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

// Adds "pair", which Hugging Face's library requires next to "single". It is the same list, with Sequence B after
// Sequence A.
Value add_missing_pair(const Value& post) {
  const auto* map = post.get_if<Attributes>();
  if (map == nullptr) return post;
  Attributes result = *map;
  if (const auto* list = map->get_if<Value::Array>("processors")) {
    Value::Array steps;
    for (const Value& step : *list) steps.push_back(add_missing_pair(step));
    result.set("processors", std::move(steps));
  }
  const auto* single = map->get_if<Value::Array>("single");
  if (map->find("pair") != nullptr || single == nullptr) return result;
  Value::Array pair;
  for (const Value& piece : *single) {
    pair.push_back(piece);
    if (const auto* item = piece.get_if<Attributes>(); item != nullptr && item->find("Sequence") != nullptr)
      pair.emplace_back(Attributes{{"Sequence", Attributes{{"id", "B"}, {"type_id", 1}}}});
  }
  result.set("pair", std::move(pair));
  return result;
}

class TokenizerJsonWriter {
 public:
  TokenizerJsonWriter(const Vocabulary& vocabulary, std::vector<std::string>& losses)
      : vocabulary_(vocabulary), losses_(losses), ids_(index_model_tokens(vocabulary)) {}

  std::string write() {
    std::string out = "{";
    for (const std::string_view key : kFields) {
      out += fmt::format("{}\n  \"{}\": ", out.size() == 1 ? "" : ",", key);
      if (key == "model") {
        append_model(out);
      } else {
        out += to_json(make_value(key));
      }
    }
    for (const auto& [key, value] : vocabulary_.pipeline) {
      if (std::ranges::find(kFields, key) == kFields.end())
        losses_.push_back(fmt::format("tokenizer.json cannot hold the vocabulary's {}", key));
    }
    return out += "\n}\n";
  }

 private:
  Value make_value(std::string_view key) const {
    if (key == "added_tokens") {
      Value::Array added;
      for (const AddedToken& token : read_added_tokens(Fields(vocabulary_.pipeline, "tokenizer"), vocabulary_.size()))
        added.emplace_back(make_added_token(token));
      return added;
    }
    const Value& value = find_or_null(vocabulary_.pipeline, key);
    if (key == "post_processor") return add_missing_pair(value);
    return key == "version" && value == kNull ? Value("1.0") : value;
  }

  const Attributes& get_model() const {
    const auto* map = find_or_null(vocabulary_.pipeline, "model").get_if<Attributes>();
    if (map == nullptr) throw Error(ErrorKind::invalid_file, "tokenizer: model: is missing");
    return *map;
  }

  void append_model(std::string& out) {
    Attributes fields;
    for (const auto& [key, value] : get_model()) {
      if (std::ranges::find(kOwn, key) == kOwn.end()) fields.set(key, value);
    }
    const bool bpe = find_or_null(fields, "type") == Value("BPE");
    const auto set_missing = [&](const char* key, const Value& value) {
      if (fields.find(key) == nullptr) fields.set(key, value);
    };
    for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
      if (bpe) set_missing(key, nullptr);
    }
    for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
      if (bpe) set_missing(key, false);
    }
    std::string text = to_json(fields);
    text.pop_back();
    out += text += text.size() == 1 ? "" : ", ";
    out += "\"vocab\": ";
    find_or_null(fields, "type") == Value("Unigram") ? append_scored_tokens(out) : append_tokens(out);
    if (bpe) append_merges(out);
    out += "}";
  }

  void append_text(std::string& out, std::string_view text) const {
    if (!is_utf8(text))
      throw Error(ErrorKind::unsupported,
                  fmt::format("tokenizer.json holds text in UTF-8, but the token \"{}\" is not UTF-8", text));
    out += to_json(text);
  }

  bool is_known(std::size_t id) const { return ids_.is_found(static_cast<TokenId>(id)); }

  void append_tokens(std::string& out) {
    std::size_t repeated = 0;
    out += "{";
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      if (!is_known(id)) {
        repeated += !vocabulary_.text(id).empty() && ids_.find(vocabulary_.text(id)) ? 1 : 0;
        continue;
      }
      if (out.back() != '{') out += ",";
      append_text(out, vocabulary_.text(id));
      out += fmt::format(":{}", id);
    }
    out += "}";
    if (repeated > 0)
      losses_.push_back(fmt::format("tokenizer.json has each text once: {} with the text of another one {} left out",
                                    format_count(repeated, "token"), repeated == 1 ? "is" : "are"));
  }

  // Appends the tokens with scores. A token's id is its index.
  void append_scored_tokens(std::string& out) const {
    const auto* scores = find_or_null(get_model(), "scores").get_if<Value::Array>();
    out += "[";
    for (std::size_t id = 0; id < vocabulary_.size() && !is_added_only(id); ++id) {
      if (id > 0) out += ",";
      out += "[";
      append_text(out, vocabulary_.text(id));
      out += fmt::format(",{}]", to_json(scores != nullptr && id < scores->size()
                                             ? (*scores)[id]
                                             : Value(static_cast<double>(vocabulary_.score(id)))));
    }
    out += "]";
  }

  bool is_added_only(std::size_t id) const { return !ids_.find(vocabulary_.text(id)); }

  // Appends merges as "a b", the form that all versions of the library read. Appends all merges as ["a", "b"] if
  // a token contains a space, or if a merge would begin with "#version", as a comment does.
  void append_merges(std::string& out) {
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    if (find_or_null(get_model(), "merge_by_score") == Value(true)) {
      merges = list_score_merges(vocabulary_, ids_);
    } else {
      merges.assign(vocabulary_.merges.begin(), vocabulary_.merges.end());
    }
    if (find_or_null(get_model(), "skip_unknown_merges") == Value(true)) {
      std::erase_if(merges, [&](const auto& merge) {
        return !ids_.find(merge.first) || !ids_.find(merge.second) ||
               !ids_.find(std::string(merge.first).append(merge.second));
      });
    }
    if (merges.size() > kMaxMerges)
      throw Error(ErrorKind::unsupported,
                  fmt::format("the vocabulary has {} merges, at most {} are allowed", merges.size(), kMaxMerges));
    const auto has_space = [](std::string_view text) { return text.find(' ') != std::string_view::npos; };
    const bool lists = std::ranges::any_of(merges, [&](const auto& merge) {
      return has_space(merge.first) || has_space(merge.second) || merge.first.starts_with("#version");
    });
    out += ", \"merges\": [";
    for (const auto& [left, right] : merges) {
      if (out.back() != '[') out += ",";
      if (lists) out += "[";
      append_text(out, lists ? std::string(left) : fmt::format("{} {}", left, right));
      if (!lists) continue;
      out += ",";
      append_text(out, right);
      out += "]";
    }
    out += "]";
  }

  const Vocabulary& vocabulary_;
  std::vector<std::string>& losses_;
  TokenIndex ids_;
};

}  // namespace

std::string format_tokenizer_json(const Vocabulary& vocabulary, std::vector<std::string>& losses) {
  return TokenizerJsonWriter(vocabulary, losses).write();
}

namespace {

constexpr std::string_view kAddedDecoder = "added_tokens_decoder";

// These keys matter for SentencePiece vocabularies. Each row has a key and its default.
constexpr std::array kFlags =
    std::to_array<std::pair<const char*, bool>>({{"add_bos_token", true}, {"add_eos_token", false}, {"legacy", true}});

// Returns tokenizer_config.json for a vocabulary that was read without such a file.
Attributes make_fresh_config(const Vocabulary& vocabulary) {
  const bool is_pipeline = vocabulary.kind == VocabularyKind::pipeline;
  Attributes config{{"tokenizer_class", is_pipeline ? "PreTrainedTokenizerFast" : "LlamaTokenizer"}};
  const Fields pipeline(vocabulary.pipeline, "tokenizer");
  const SpecialAround around = find_special_around(vocabulary);
  config.set("add_bos_token",
             vocabulary.bos_id >= 0 && !around.before.empty() && around.before.front() == vocabulary.bos_id);
  config.set("add_eos_token",
             vocabulary.eos_id >= 0 && !around.after.empty() && around.after.back() == vocabulary.eos_id);
  if (!is_pipeline && read_normalizer_rules(vocabulary).prepend_first) config.set("legacy", false);
  std::vector<Attributes::Entry> added;
  std::unordered_set<TokenId> ids;
  for (const AddedToken& token : read_added_tokens(pipeline, vocabulary.size())) {
    if (!ids.insert(token.id).second) continue;
    Attributes entry = make_added_token(token);
    entry.erase("id");
    added.emplace_back(std::to_string(token.id), std::move(entry));
  }
  if (!added.empty()) config.set(std::string(kAddedDecoder), Attributes::from_unique(std::move(added)));
  for (const auto& [key, id, usual] : kNamedTokens) {
    if (vocabulary.*id >= 0) config.set(key, vocabulary.text(static_cast<std::size_t>(vocabulary.*id)));
  }
  if (vocabulary.chat_template != Value()) config.set("chat_template", vocabulary.chat_template);
  config.set("clean_up_tokenization_spaces", false);
  if (vocabulary.max_length > 0) config.set("model_max_length", vocabulary.max_length);
  return config;
}

// Updates the tokenizer_config.json that a vocabulary was read with, where the vocabulary now differs.
class KeptConfig {
 public:
  KeptConfig(const Vocabulary& vocabulary, const Attributes& made) : vocabulary_(vocabulary), made_(made) {
    for (std::size_t id = vocabulary.size(); id-- > 0;) ids_[vocabulary.text(id)] = static_cast<std::int32_t>(id);
    special_map_ = read_kept_object(vocabulary.files, kSpecialTokensMap);
  }

  Attributes merge() const {
    Attributes config;
    for (const auto& [key, value] : vocabulary_.tokenizer_config) {
      if (const Value* right = is_up_to_date(key, value) ? &value : made_.find(key)) config.set(key, *right);
    }
    for (const auto& [key, value] : made_) {
      if (config.find(key) == nullptr && is_needed(key)) config.set(key, value);
    }
    return config;
  }

 private:
  bool is_sentencepiece() const { return vocabulary_.kind != VocabularyKind::pipeline; }

  // Returns true when a reader of the file would find the vocabulary's value.
  bool is_up_to_date(const std::string& key, const Value& value) const {
    for (const NamedToken& token : kNamedTokens) {
      if (key != token.key) continue;
      const std::string* text = find_named_text(value);
      const auto found = text == nullptr ? ids_.end() : ids_.find(*text);
      return found != ids_.end() ? found->second == vocabulary_.*token.id : is_stored_elsewhere(token);
    }
    for (const auto& [name, usual] : kFlags) {
      if (key == name && is_sentencepiece())
        return read_flag(vocabulary_.tokenizer_config, key, usual) == read_flag(made_, key, usual);
    }
    return key != kAddedDecoder || lists_added_tokens(value);
  }

  // Returns true when a reader of a file without the key would not find the vocabulary's value.
  bool is_needed(const std::string& key) const {
    for (const auto& [name, usual] : kFlags) {
      if (key == name) return is_sentencepiece() && read_flag(made_, key, usual) != usual;
    }
    for (const NamedToken& token : kNamedTokens) {
      if (key == token.key) return !is_stored_elsewhere(token);
    }
    return key == "chat_template" || (key == kAddedDecoder && is_sentencepiece());
  }

  // Returns true when readers find the token without tokenizer_config.json, or when there is no such token.
  bool is_stored_elsewhere(const NamedToken& token) const {
    const std::int32_t id = vocabulary_.*token.id;
    if (id < 0) return true;
    if (is_sentencepiece()) return vocabulary_.text(static_cast<std::size_t>(id)) == token.usual;
    const std::string* text = find_named_text(special_map_, token.key);
    if (text != nullptr) return *text == vocabulary_.text(static_cast<std::size_t>(id));
    return std::string_view(token.key) == "unk_token";
  }

  // Returns true when the list agrees with the vocabulary. For a SentencePiece vocabulary it must be complete, because
  // no other file has the added tokens.
  bool lists_added_tokens(const Value& value) const {
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) return false;
    std::size_t known = 0;
    for (const auto& [key, token] : *map) {
      std::size_t id = 0;
      const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
      const std::string* text = find_named_text(token);
      if (problem != std::errc() || end != key.data() + key.size() || text == nullptr) return false;
      if (id >= vocabulary_.size()) continue;  // a token without a row in the model
      if (vocabulary_.text(id) != *text) return false;
      ++known;
    }
    if (!is_sentencepiece()) return true;
    const auto* made = find_or_null(made_, kAddedDecoder).get_if<Attributes>();
    const auto is_listed = [&](const Attributes::Entry& token) { return map->find(token.first) != nullptr; };
    return (made == nullptr ? 0 : made->size()) == known && (made == nullptr || std::ranges::all_of(*made, is_listed));
  }

  const Vocabulary& vocabulary_;
  const Attributes& made_;
  Attributes special_map_;                                  // special_tokens_map.json
  std::unordered_map<std::string_view, std::int32_t> ids_;  // if several tokens have a text, the first one
};

}  // namespace

Attributes make_tokenizer_config(const Vocabulary& vocabulary) {
  const Attributes made = make_fresh_config(vocabulary);
  return vocabulary.tokenizer_config.empty() ? made : KeptConfig(vocabulary, made).merge();
}

void drop_usual_config(Vocabulary& vocabulary) {
  if (vocabulary.tokenizer_config.empty()) return;
  Attributes made = make_fresh_config(vocabulary);
  made.erase("chat_template");  // Vocabulary::chat_template holds it
  const auto is_made = [&](const Attributes::Entry& entry) {
    const Value* value = made.find(entry.first);
    return value != nullptr && *value == entry.second;
  };
  if (made.size() == vocabulary.tokenizer_config.size() && std::ranges::all_of(vocabulary.tokenizer_config, is_made))
    vocabulary.tokenizer_config = {};
}

Attributes find_config_besides_tokens(const Vocabulary& vocabulary) {
  Attributes config;
  if (vocabulary.tokenizer_config.empty()) return config;
  const Attributes made = make_fresh_config(vocabulary);
  const auto is_token_key = [](const std::string& key) {
    return key == kAddedDecoder || std::ranges::find(kNamedTokens, key, &NamedToken::key) != kNamedTokens.end() ||
           std::ranges::find(kFlags, key, &std::pair<const char*, bool>::first) != kFlags.end();
  };
  for (const auto& [key, value] : vocabulary.tokenizer_config) {
    if (!is_token_key(key) && value != find_or_null(made, key)) config.set(key, value);
  }
  return config;
}

}  // namespace poise
