#include "ops/merge/join_vocabularies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "syntax/element_value.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/pipeline/merges.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {
namespace {

constexpr std::string_view kAdded = "added_tokens";
constexpr std::string_view kAddedOnly = "added_only";
constexpr std::string_view kScores = "scores";
constexpr std::string_view kAddedDecoder = "added_tokens_decoder";  // a key of tokenizer_config.json

bool is_pipeline(const Vocabulary& vocabulary) { return vocabulary.kind == VocabularyKind::pipeline; }

const Attributes& get_model(const Vocabulary& vocabulary) {
  static const Attributes kNone;
  const auto* model = vocabulary.pipeline.get_if<Attributes>("model");
  return model == nullptr ? kNone : *model;
}

std::string get_type(const Vocabulary& vocabulary) {
  const auto* type = get_model(vocabulary).get_if<std::string>("type");
  return type == nullptr ? "" : *type;
}

bool has_byte_level(const Vocabulary& vocabulary) {
  const Fields pipeline(vocabulary.pipeline, "tokenizer");
  const auto has_step = [&](std::string_view part, std::string_view list) {
    return std::ranges::any_of(gguf_forms::collect_steps(pipeline, part, list),
                               [](const Fields& step) { return step.require_text("type") == "ByteLevel"; });
  };
  return has_step("pre_tokenizer", "pretokenizers") || has_step("decoder", "decoders") ||
         has_step("normalizer", "normalizers");
}

// Describes the algorithm, and how tokens spell spaces, bytes and places in a word. If the descriptions of two
// vocabularies are equal, tokens with the same text mean the same in both.
std::string describe_tokenizer(const Vocabulary& vocabulary) {
  if (vocabulary.kind == VocabularyKind::byte_pair) return "BPE of Tiny Llama";
  std::string text;
  if (is_pipeline(vocabulary)) {
    const Attributes& model = get_model(vocabulary);
    text = get_type(vocabulary) + " of tokenizer.json";
    if (has_byte_level(vocabulary)) text += " over bytes";
    if (read_flag(model, "byte_fallback", false)) text += " with byte fallback";
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto* mark = model.get_if<std::string>(key);
      if (mark != nullptr && !mark->empty()) text += fmt::format(" with {} {}", key, to_json(*mark));
    }
    return text;
  }
  text = vocabulary.kind == VocabularyKind::sentencepiece_bpe ? "BPE of SentencePiece" : "Unigram of SentencePiece";
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::byte) return text + " with byte fallback";
  }
  return text;
}

void require_same_kind(const NamedVocabulary& own, const NamedVocabulary& other) {
  const std::string kind = describe_tokenizer(own.vocabulary);
  const std::string other_kind = describe_tokenizer(other.vocabulary);
  if (kind == other_kind) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("tokenizer_source: the tokenizer of {} is {}, and that of {} is {}. Poise joins only "
                          "tokenizers of one kind; merge models with the same kind",
                          own.model, kind, other.model, other_kind));
}

bool have_same_normalization(const Vocabulary& a, const Vocabulary& b) {
  const auto has_same = [&](std::string_view key) {
    const Value none;
    const Value* left = a.pipeline.find(key);
    const Value* right = b.pipeline.find(key);
    return (left == nullptr ? none : *left) == (right == nullptr ? none : *right);
  };
  return has_same("normalizer") && has_same("pre_tokenizer") && a.normalizer == b.normalizer &&
         a.add_dummy_prefix == b.add_dummy_prefix && a.remove_extra_whitespaces == b.remove_extra_whitespaces;
}

// Returns true if two tokens merge when their concatenation is a token, the highest score first.
bool merges_by_score(const Vocabulary& vocabulary) {
  return vocabulary.kind == VocabularyKind::sentencepiece_bpe ||
         (is_pipeline(vocabulary) && read_flag(get_model(vocabulary), "merge_by_score", false));
}

bool is_unigram(const Vocabulary& vocabulary) {
  return vocabulary.kind == VocabularyKind::sentencepiece_unigram ||
         (is_pipeline(vocabulary) && get_type(vocabulary) == "Unigram");
}

TokenIndex index_tokens(const Vocabulary& vocabulary) {
  return is_pipeline(vocabulary) ? index_model_tokens(vocabulary) : TokenIndex(vocabulary, {});
}

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

Pairs list_merges(const Vocabulary& vocabulary) {
  if (merges_by_score(vocabulary)) return list_score_merges(vocabulary, index_tokens(vocabulary));
  return {vocabulary.merges.begin(), vocabulary.merges.end()};
}

// Returns the text that a pair makes. `prefix` marks tokens inside a word.
std::string join_pair(const std::pair<std::string_view, std::string_view>& pair, std::string_view prefix) {
  std::string_view right = pair.second;
  if (!prefix.empty() && right.starts_with(prefix)) right.remove_prefix(prefix.size());
  return std::string(pair.first).append(right);
}

// Returns the score minus 1, or the next lower number if float32 rounds that to the same score.
float compute_lower_score(float score) {
  return std::min(score - 1, std::nextafter(score, std::numeric_limits<float>::lowest()));
}

double read_score(const Vocabulary& vocabulary, std::size_t id) {
  const auto* wide = get_model(vocabulary).get_if<Value::Array>(kScores);
  if (wide != nullptr && id < wide->size()) {
    if (const auto score = convert_to_double(&(*wide)[id])) return *score;
  }
  return static_cast<double>(vocabulary.score(id));
}

// Adds the tokens of other vocabularies to one: first those that algorithms make of texts, then added tokens.
class VocabularyUnion {
 public:
  explicit VocabularyUnion(const NamedVocabulary& own)
      : own_(own), made_(own.vocabulary), by_score_(merges_by_score(own.vocabulary)) {
    for (std::size_t id = 0; id < own.vocabulary.size(); ++id) {
      known_.insert(own.vocabulary.text(id));
      const float score = own.vocabulary.score(id);
      if (own.vocabulary.type(id) == TokenType::normal && std::isfinite(score))
        least_score_ = std::min(least_score_, std::floor(score));
    }
    if (const auto* mark = get_model(own.vocabulary).get_if<std::string>("continuing_subword_prefix")) prefix_ = *mark;
    // The tokens of other models get the ids after the last row, so entries of added_tokens_decoder with such ids are
    // removed.
    if (const Value* decoder = made_.tokenizer_config.find(kAddedDecoder))
      made_.tokenizer_config.set(std::string(kAddedDecoder), keep_listed_ids_below(*decoder, made_.size()));
  }

  void add(const NamedVocabulary& other) {
    const std::size_t before = made_.size();
    OtherTokens tokens = list_new_tokens(other.vocabulary);
    add_model_tokens(other, tokens.of_model);
    if (made_.size() > before && !by_score_) add_merges(other.vocabulary);
    for (const AddedToken& token : tokens.added) added_.push_back(token);
  }

  Vocabulary finish() && {
    add_scores();
    add_added_tokens();
    return std::move(made_);
  }

 private:
  struct AddedToken {
    const Vocabulary* vocabulary;
    std::size_t id;
    const Attributes* entry;  // the token's entry in the list added_tokens; null: none
  };
  struct OtherTokens {
    std::vector<std::size_t> of_model;
    std::vector<AddedToken> added;
  };

  // Lists the tokens that the union lacks so far, by id. From then on, these tokens count as known.
  OtherTokens list_new_tokens(const Vocabulary& other) {
    std::unordered_map<std::size_t, const Attributes*> listed;
    if (const auto* list = other.pipeline.get_if<Value::Array>(kAdded)) {
      for (const Value& item : *list) {
        const auto* id = get_member<std::uint64_t>(item, "id");
        if (id != nullptr) listed.emplace(static_cast<std::size_t>(*id), item.get_if<Attributes>());
      }
    }
    OtherTokens tokens;
    for (std::size_t id = 0; id < other.size(); ++id) {
      const TokenType type = other.type(id);
      if (type == TokenType::unused || other.text(id).empty()) continue;
      if (!known_.insert(other.text(id)).second) continue;
      const auto found = listed.find(id);
      if (found == listed.end() && (type == TokenType::normal || type == TokenType::byte)) {
        tokens.of_model.push_back(id);
      } else {
        tokens.added.push_back({&other, id, found == listed.end() ? nullptr : found->second});
      }
    }
    return tokens;
  }

  void add_model_tokens(const NamedVocabulary& other, const std::vector<std::size_t>& ids) {
    if (ids.empty()) return;
    const auto* added_only = get_model(made_).get_if<Value::Array>(kAddedOnly);
    if (is_unigram(made_) && added_only != nullptr && !added_only->empty())
      throw Error(ErrorKind::unsupported,
                  fmt::format("tokenizer_source: {} has {} that {} lacks, and a Unigram of tokenizer.json cannot hold "
                              "them after its added tokens; use tokenizer_source: base",
                              other.model, format_count(ids.size(), "token"), own_.model));
    std::vector<float> scores(ids.size());
    if (by_score_) {
      // The new tokens get lower scores than the tokens before, so that merges to the latter come first.
      for (const std::size_t i : order_by_merges(other.vocabulary, ids))
        scores[i] = least_score_ = compute_lower_score(least_score_);
    } else {
      for (std::size_t i = 0; i < ids.size(); ++i) scores[i] = other.vocabulary.score(ids[i]);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      sources_.push_back({&other.vocabulary, ids[i]});
      made_.add(other.vocabulary.text(ids[i]), scores[i], other.vocabulary.type(ids[i]));
    }
  }

  // Returns the indices of ids in the order in which the other model merges to these tokens.
  static std::vector<std::size_t> order_by_merges(const Vocabulary& other, const std::vector<std::size_t>& ids) {
    std::vector<double> ranks(ids.size());
    if (merges_by_score(other)) {
      for (std::size_t i = 0; i < ids.size(); ++i) ranks[i] = -static_cast<double>(other.score(ids[i]));
    } else {
      std::unordered_map<std::string_view, std::size_t> first;  // the first merge that makes a text
      for (std::size_t rank = 0; rank < other.merges.size(); ++rank) first.emplace(other.merges.joined(rank), rank);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto found = first.find(other.text(ids[i]));
        ranks[i] = static_cast<double>(found == first.end() ? other.merges.size() : found->second);
      }
    }
    for (double& rank : ranks) {
      if (std::isnan(rank)) rank = std::numeric_limits<double>::infinity();
    }
    std::vector<std::size_t> order(ids.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return ranks[i]; });
    return order;
  }

  // Appends the merges that make tokens which `own` lacks. Adds no merges that make tokens of `own`, so that texts
  // merge to these as before, and only then to the new ones.
  void add_merges(const Vocabulary& other) {
    if (get_type(made_) != "BPE" && made_.kind != VocabularyKind::byte_pair) return;
    const TokenIndex index = index_tokens(made_);
    const Pairs pairs = list_merges(other);
    MergeList merges = made_.merges;
    for (const auto& pair : pairs) {
      const auto joined = index.find(join_pair(pair, prefix_));
      const bool makes_new = joined && static_cast<std::size_t>(*joined) >= own_.vocabulary.size();
      if (!makes_new || !index.find(pair.first) || !index.find(pair.second)) continue;
      if (pairs_.insert(fmt::format("{}:{}{}", pair.first.size(), pair.first, pair.second)).second)
        merges.emplace_back(pair.first, pair.second);
    }
    made_.merges = std::move(merges);
  }

  // Adds the scores of a Unigram of tokenizer.json as float64, if a vocabulary has such scores.
  void add_scores() {
    if (!is_pipeline(made_) || !is_unigram(made_) || sources_.empty()) return;
    const auto is_wide = [](const Vocabulary& vocabulary) { return get_model(vocabulary).find(kScores) != nullptr; };
    const auto has_wide_source = [&](const Source& source) { return is_wide(*source.vocabulary); };
    if (!is_wide(own_.vocabulary) && std::ranges::none_of(sources_, has_wide_source)) return;
    Value::Array scores;
    for (std::size_t id = 0; id < own_.vocabulary.size(); ++id) scores.emplace_back(read_score(own_.vocabulary, id));
    for (const Source& source : sources_) scores.emplace_back(read_score(*source.vocabulary, source.id));
    set_model_key(kScores, std::move(scores));
  }

  void set_model_key(std::string_view key, Value value) {
    Attributes model = get_model(made_);
    model.set(std::string(key), std::move(value));
    made_.pipeline.set("model", std::move(model));
  }

  void add_added_tokens() {
    if (added_.empty()) return;
    const auto* listed = made_.pipeline.get_if<Value::Array>(kAdded);
    Value::Array list = listed == nullptr ? Value::Array() : *listed;
    const auto* only = get_model(made_).get_if<Value::Array>(kAddedOnly);
    Value::Array added_only = only == nullptr ? Value::Array() : *only;
    std::vector<Attributes::Entry> decoder;
    if (const auto* map = made_.tokenizer_config.get_if<Attributes>(kAddedDecoder))
      decoder.assign(map->begin(), map->end());
    for (const AddedToken& token : added_) {
      const std::uint64_t id = made_.size();
      const TokenType type = token.vocabulary->type(token.id);
      Attributes entry = make_entry(token, type);
      const bool is_special = read_flag(entry, "special", false);
      made_.add(token.vocabulary->text(token.id), is_pipeline(made_) ? 0.0F : kListedScore,
                is_special ? TokenType::control : TokenType::user_defined);
      added_only.emplace_back(id);
      // A piece that only tokenizer.model lists stays out of added_tokens: SentencePiece does not look for its control
      // pieces in texts.
      if (token.entry == nullptr && !is_pipeline(made_)) continue;
      Attributes of_config = entry;
      of_config.erase("id");
      decoder.emplace_back(std::to_string(id), std::move(of_config));
      entry.set("id", id);
      list.emplace_back(std::move(entry));
    }
    if (!list.empty()) made_.pipeline.set(std::string(kAdded), std::move(list));
    if (is_pipeline(made_)) set_model_key(kAddedOnly, std::move(added_only));
    if (made_.tokenizer_config.get_if<Attributes>(kAddedDecoder) != nullptr)
      made_.tokenizer_config.set(std::string(kAddedDecoder), Attributes::from_unique(std::move(decoder)));
  }

  static Attributes make_entry(const AddedToken& token, TokenType type) {
    if (token.entry != nullptr) return *token.entry;
    return make_listed_token(token.id, token.vocabulary->text(token.id), type != TokenType::user_defined);
  }

  struct Source {
    const Vocabulary* vocabulary;
    std::size_t id;
  };

  const NamedVocabulary& own_;
  Vocabulary made_;
  bool by_score_;
  float least_score_ = 0;  // a whole number
  std::string prefix_;
  std::unordered_set<std::string_view> known_;  // texts of the vocabularies
  std::unordered_set<std::string> pairs_;       // merges that have been added
  std::vector<Source> sources_;                 // of the tokens that add_model_tokens() has added
  std::vector<AddedToken> added_;
};

std::vector<TokenId> find_ids(const Vocabulary& vocabulary, const Vocabulary& joined) {
  std::shared_ptr<const TokenTexts> texts = TokenTexts::get(vocabulary);
  if (texts == nullptr) texts = std::make_shared<const TokenTexts>(vocabulary);
  std::vector<TokenId> ids(joined.size(), -1);
  for (std::size_t id = 0; id < joined.size(); ++id) {
    if (!joined.text(id).empty()) ids[id] = texts->find(vocabulary, joined.text(id)).value_or(-1);
  }
  return ids;
}

}  // namespace

JoinedVocabulary join_vocabularies(std::span<const NamedVocabulary> models, std::size_t own, bool adds_tokens) {
  JoinedVocabulary result;
  for (const NamedVocabulary& model : models) require_same_kind(models[own], model);
  result.vocabulary = models[own].vocabulary;
  const std::size_t size = result.vocabulary.size();
  if (adds_tokens) {
    VocabularyUnion all(models[own]);
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (i == own) continue;
      all.add(models[i]);
      if (!have_same_normalization(models[own].vocabulary, models[i].vocabulary))
        result.notes.push_back(
            fmt::format("the tokenizer of {} normalizes or cuts texts in another way than that of {}, which the result "
                        "follows",
                        models[i].model, models[own].model));
    }
    Vocabulary joined = std::move(all).finish();
    if (joined.size() > size) result.vocabulary = std::move(joined);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::vector<TokenId>& ids = result.ids.emplace_back();
    if (i != own) {
      ids = find_ids(models[i].vocabulary, result.vocabulary);
      continue;
    }
    // All tokens of `own` keep their ids, even those without a text or with the text of another token.
    ids.assign(result.vocabulary.size(), -1);
    std::iota(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(size), TokenId{0});
  }
  return result;
}

}  // namespace poise
