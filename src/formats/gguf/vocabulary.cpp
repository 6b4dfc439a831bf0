#include "formats/gguf/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "model/limits.hpp"
#include "numeric/float_formats.hpp"
#include "syntax/json.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/gguf/texts.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kName = "general.name";

std::string get_text_or_empty(const Value* value) {
  const auto* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

// Returns the token type with llama.cpp's number: unused for 0, which is undefined there, and normal for an unknown
// number.
TokenType decode_token_type(std::int32_t number) {
  if (number == 0) return TokenType::unused;
  return number < 0 ? TokenType::normal
                    : find_token_type(static_cast<std::uint64_t>(number)).value_or(TokenType::normal);
}

[[noreturn]] void fail(std::string_view what, std::string_view problem, const std::string& path) {
  throw Error(ErrorKind::invalid_file, fmt::format("gguf: metadata: {}{}: {}", kTokenizer, what, problem), path);
}

// Returns true if a value is the id of one of `count` tokens.
bool is_token_id(const Value* value, std::size_t count) {
  const auto* id = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  return id != nullptr && *id < count;
}

std::string make_key(std::string_view name) { return std::string(kTokenizer).append(name); }

// Finds llama.cpp's defaults for missing keys, and for ids without a token (after the last one, or negative).
class DefaultValues {
 public:
  // `model` is the value of tokenizer.ggml.model, `count` the number of tokens.
  DefaultValues(const Entries& entries, std::string_view model, std::size_t count)
      : entries_(entries),
        model_(model),
        count_(count),
        pre_(get_text_or_empty(entries.find(make_key("pre")))),
        ids_(find_default_gguf_ids(model, pre_)) {}

  // Returns llama.cpp's default of a special token's key; -1: none, or an id without a token.
  std::int32_t find_default_id(std::string_view key) const {
    constexpr std::array kIds = std::to_array<std::pair<std::string_view, std::int32_t SpecialIds::*>>(
        {{"bos_token_id", &SpecialIds::bos_id},
         {"eos_token_id", &SpecialIds::eos_id},
         {"unknown_token_id", &SpecialIds::unk_id}});
    const auto* row = std::ranges::find(kIds, key, &std::pair<std::string_view, std::int32_t SpecialIds::*>::first);
    const std::int32_t usual = row == kIds.end() ? -1 : ids_.*(row->second);
    return usual >= 0 && static_cast<std::size_t>(usual) < count_ ? usual : -1;
  }

  void add_warnings(bool has_types, std::vector<Finding>& warnings, const std::string& path) const {
    const auto add = [&](std::string message) {
      warnings.push_back({Severity::warning, "gguf: metadata: " + std::move(message), path, {}});
    };
    for (const auto& [key, value] : entries_.rest()) {
      if (!key.starts_with(kTokenizer) || !key.ends_with("_token_id") || is_token_id(&value, count_)) continue;
      const std::int32_t usual = find_default_id(std::string_view(key).substr(kTokenizer.size()));
      add(fmt::format("{} is {}, but the vocabulary has {} tokens: {}", key, to_json(value), count_,
                      usual < 0 ? "it is not used" : fmt::format("llama.cpp's default, {}, is used instead", usual)));
    }
    std::vector<std::string> missing;
    if (model_ == "llama" && !has_types)
      missing.push_back(make_key("token_type") + " (bytes are found by their texts)");
    if (model_ == "gpt2" && pre_.empty())
      missing.push_back(make_key("pre") + " (\"default\": texts may become other tokens than in training)");
    for (const std::string_view name : {"bos_token_id", "eos_token_id"}) {
      const bool is_used = name != "bos_token_id" || model_ == "llama";
      if (is_used && find_default_id(name) >= 0 && entries_.find(make_key(name)) == nullptr)
        missing.push_back(fmt::format("{} ({})", make_key(name), find_default_id(name)));
    }
    if (!missing.empty())
      add(fmt::format("llama.cpp's defaults are used for missing keys: {}", fmt::join(missing, ", ")));
  }

 private:
  const Entries& entries_;
  std::string_view model_;
  std::size_t count_;
  std::string pre_;
  SpecialIds ids_;
};

// Returns the type of a token in a file without types.
TokenType guess_type_by_text(std::string_view text) {
  return parse_byte_piece(text) ? TokenType::byte : TokenType::normal;
}

}  // namespace

bool is_vocabulary_key(std::string_view key) {
  if (key == kLongestKey) return true;
  constexpr std::array<std::string_view, 5> kNames = {"model", "tokens", "scores", "token_type", "merges"};
  return key.starts_with(kTokenizer) && std::ranges::find(kNames, key.substr(kTokenizer.size())) != kNames.end();
}

TokenType find_type_after_reading(const Vocabulary& vocabulary, std::size_t id) {
  return choose_special_token_type(decode_token_type(find_token_type_number(vocabulary.type(id))), vocabulary, id);
}

bool Tokens::read(std::string_view key, MetadataValue& value, HeaderReader& header) {
  if (!key.starts_with(kTokenizer)) return false;
  const std::string_view name = key.substr(kTokenizer.size());
  const auto require_array = [&](bool is_array, std::uint64_t most, std::string_view kind) {
    if (!is_array) header.fail(key, fmt::format("expected an array of {}", kind), value.position());
    if (value.count() > most)
      throw Error(ErrorKind::unsupported,
                  fmt::format("gguf: metadata: {}: {} items, at most {} are allowed", key, value.count(), most));
  };
  if (name == "tokens" || name == "merges") {
    std::optional<Texts>& texts = name == "tokens" ? tokens_ : merges_;
    require_array(value.type() == ValueType::array && value.item_type() == ValueType::text,
                  name == "tokens" ? kMaxTokens : kMaxMerges, "texts");
    texts.emplace();
    value.visit_texts([&](std::string_view text) {
      if (text.size() > std::numeric_limits<std::uint32_t>::max() - texts->arena.size())
        header.fail(key, "more than 4 GiB of text", value.position());
      texts->arena += text;
      texts->ends.push_back(static_cast<std::uint32_t>(texts->arena.size()));
    });
  } else if (name == "scores") {
    // Accepts integers too, because some of llama.cpp's tools write them.
    require_array(value.type() == ValueType::array &&
                      (value.item_type() == ValueType::f32 || value.item_type() == ValueType::i32),
                  kMaxTokens, "f32");
    scores_.emplace();
    value.visit_numbers([&](double number) { scores_->push_back(static_cast<float>(number)); });
  } else if (name == "token_type") {
    require_array(value.type() == ValueType::array &&
                      (value.item_type() == ValueType::i32 || value.item_type() == ValueType::u32),
                  kMaxTokens, "i32");
    types_.emplace();
    value.visit_numbers([&](double number) {
      types_->push_back(number > 1000 || number < 0 ? -1 : static_cast<std::int32_t>(number));
    });
  } else {
    return false;
  }
  return true;
}

std::optional<Vocabulary> Tokens::make_vocabulary(Entries& entries, std::vector<Finding>& warnings,
                                                  const std::string& path) {
  if (!tokens_) {
    const std::string name = get_text_or_empty(entries.find(make_key("model")));
    if (name == kNoTokenizer || name == "no_vocab") entries.remove(make_key("model"));
    return std::nullopt;
  }
  if (scores_ && scores_->size() != tokens_->size())
    fail("scores", fmt::format("expected one for each of {} tokens, found {}", tokens_->size(), scores_->size()), path);
  if (types_ && types_->size() != tokens_->size())
    fail("token_type", fmt::format("expected one for each of {} tokens, found {}", tokens_->size(), types_->size()),
         path);
  const std::size_t count = tokens_->size();
  const std::string model = get_text_or_empty(entries.find(make_key("model")));
  const DefaultValues defaults(entries, model, count);
  defaults.add_warnings(types_.has_value(), warnings, path);
  const auto find_id = [&](std::string_view name, std::int32_t absent) {
    const Value* value = entries.find(make_key(name));
    return is_token_id(value, count) ? static_cast<std::int32_t>(*value->get_if<std::uint64_t>()) : absent;
  };
  ids_ = {.bos_id = find_id("bos_token_id", model == "llama" ? defaults.find_default_id("bos_token_id") : -1),
          .eos_id = find_id("eos_token_id", defaults.find_default_id("eos_token_id")),
          .pad_id = find_id("padding_token_id", -1),
          .unk_id = find_id("unknown_token_id", defaults.find_default_id("unknown_token_id"))};
  if (model != "llama") return std::nullopt;
  entries.remove(make_key("model"));
  Vocabulary vocabulary;
  vocabulary.reserve(count, tokens_->arena.size());
  vocabulary.special_ids() = ids_;
  for (const std::string_view name : {"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id"}) {
    const std::string key = make_key(name);
    if (is_token_id(entries.find(key), count)) entries.remove(key);
  }
  vocabulary.max_length = static_cast<std::int32_t>(entries.remove_number(kLongestKey).value_or(0));
  for (std::size_t id = 0; id < count; ++id) {
    const TokenType type = types_ ? decode_token_type((*types_)[id]) : guess_type_by_text(tokens_->at(id));
    vocabulary.add(tokens_->at(id), scores_ ? (*scores_)[id] : 0.0F, choose_special_token_type(type, vocabulary, id));
  }
  const auto read_flag = [&](std::string_view name, bool usual) {
    const std::string key = make_key(name);
    if (entries.get_if<bool>(key) == nullptr) return usual;
    return std::move(*entries.remove(key)).take<bool>();
  };
  vocabulary.add_dummy_prefix = read_flag("add_space_prefix", true);
  vocabulary.remove_extra_whitespaces = read_flag("remove_extra_whitespaces", false);
  // The entry is removed, because writing a vocabulary sets it again.
  if (const Value* pre = entries.find(make_key("pre")); pre != nullptr && *pre == Value("default"))
    entries.remove(make_key("pre"));
  // If the file lacks the token, a flag that is true has no effect and stays an attribute.
  const auto read_special_flag = [&](std::string_view name, std::int32_t id, bool usual) {
    const auto* flag = entries.get_if<bool>(make_key(name));
    return id < 0 && flag != nullptr && *flag ? usual : read_flag(name, usual);
  };
  const bool bos = read_special_flag("add_bos_token", vocabulary.bos_id, true);
  set_special_around(vocabulary, bos, read_special_flag("add_eos_token", vocabulary.eos_id, false));
  GgufTexts texts = read_gguf_texts(entries.rest(), path);
  vocabulary.chat_template = std::move(texts.chat_template);
  vocabulary.tokenizer_config = std::move(texts.tokenizer_config);
  vocabulary.files = std::move(texts.files);
  std::erase_if(entries.rest(), [](const Attributes::Entry& entry) { return is_gguf_text_key(entry.first); });
  Value::Array added = find_gguf_added_tokens(vocabulary, get_text_or_empty(entries.find(kName)));
  if (!added.empty()) vocabulary.pipeline.set("added_tokens", std::move(added));
  tokens_.reset();
  scores_.reset();
  types_.reset();
  return vocabulary;
}

void Tokens::append_unused_arrays(std::vector<Attributes::Entry>& entries) {
  const auto add = [&](std::string_view name, auto& items, auto&& make_value) {
    if (!items) return;
    Value::Array array;
    array.reserve(items->size());
    for (std::size_t i = 0; i < items->size(); ++i) array.push_back(make_value(*items, i));
    entries.emplace_back(make_key(name), std::move(array));
    items.reset();
  };
  add("tokens", tokens_, [](const Texts& texts, std::size_t i) { return Value(texts.at(i)); });
  add("scores", scores_,
      [](const std::vector<float>& scores, std::size_t i) { return Value(convert_by_spelling(scores[i])); });
  add("token_type", types_, [](const std::vector<std::int32_t>& types, std::size_t i) { return Value(types[i]); });
  add("merges", merges_, [](const Texts& texts, std::size_t i) { return Value(texts.at(i)); });
}

namespace {

// Appends unused tokens for rows of the embedding without a token, because llama.cpp requires as many tokens as rows.
void pad_tokens(GgufTokenizer& form, std::uint64_t embeddings) {
  for (std::uint64_t id = form.tokens.size(); id < embeddings; ++id) {
    form.tokens.push_back(fmt::format("[PAD{}]", id));
    if (!form.scores.empty()) form.scores.push_back(-1000.0F);
    form.token_type.push_back(find_token_type_number(TokenType::unused));
  }
  rename_repeated_tokens(form.tokens);  // a token may have the same text as padding
}

void write_gguf_tokenizer(const GgufTokenizer& form, const Vocabulary& vocabulary, KeyValues& out) {
  const std::uint64_t count = form.tokens.size();
  out.add_text(make_key("model"), form.model);
  if (!out.has(make_key("pre"))) out.add_text(make_key("pre"), form.pre);
  ByteWriter& texts = out.begin_array(make_key("tokens"), ValueType::text, count);
  for (const std::string& text : form.tokens) KeyValues::append_text(texts, text);
  if (!form.scores.empty()) {
    ByteWriter& scores = out.begin_array(make_key("scores"), ValueType::f32, count);
    for (const float score : form.scores) scores.append_f32(score);
  }
  ByteWriter& types = out.begin_array(make_key("token_type"), ValueType::i32, count);
  for (const std::int32_t type : form.token_type) types.append_i32(type);
  if (!form.merges.empty()) {
    ByteWriter& merges = out.begin_array(make_key("merges"), ValueType::text, form.merges.size());
    for (const std::string& merge : form.merges) KeyValues::append_text(merges, merge);
  }
  const auto write_id = [&](std::string_view name, const std::optional<std::int32_t>& id) {
    const std::string key = make_key(name);
    if (id && !out.has(key)) out.add_u32(key, static_cast<std::uint64_t>(*id));
  };
  write_id("bos_token_id", form.bos_token_id);
  write_id("eos_token_id", form.eos_token_id);
  write_id("unknown_token_id", form.unknown_token_id);
  write_id("padding_token_id", form.padding_token_id);
  write_id("seperator_token_id", form.seperator_token_id);
  const auto write_flag = [&](std::string_view name, const std::optional<bool>& flag) {
    const std::string key = make_key(name);
    if (flag && !out.has(key)) out.add_boolean(key, *flag);
  };
  write_flag("add_space_prefix", form.add_space_prefix);
  write_flag("remove_extra_whitespaces", form.remove_extra_whitespaces);
  write_flag("normalizer.lowercase", form.lowercase);
  write_flag("normalizer.strip_accents", form.strip_accents);
  if (const std::string& rules = form.precompiled_charsmap;
      !rules.empty() && !out.has(make_key("precompiled_charsmap")))
    out.begin_array(make_key("precompiled_charsmap"), ValueType::u8, rules.size()).append_text(rules);
  if (vocabulary.max_length > 0) out.add_u32(kLongestKey, static_cast<std::uint64_t>(vocabulary.max_length));
  write_flag("add_bos_token", form.add_bos_token);
  write_flag("add_eos_token", form.add_eos_token);
  for (const auto& [key, value] : make_gguf_chat_template(form.chat_template)) {
    if (!out.has(key)) out.add_value(key, value);
  }
  out.add_text_if_new(kGgufTokenizerConfig, format_gguf_tokenizer_config(form.chat_template, form.tokenizer_config));
  out.add_text_if_new(kGgufTokenizerFiles, format_gguf_tokenizer_files(form.files));
}

// Sets the ids that readers assume if the file has none, so that the file states them. Returns a sentence about each.
// `out` has the keys of the file.
std::vector<std::string> set_default_ids(GgufTokenizer& form, const KeyValues& out) {
  const SpecialIds usual = find_default_gguf_ids(form.model, form.pre);
  struct Special {
    std::string_view name;
    std::string_view key;
    std::optional<std::int32_t> GgufTokenizer::*id;
    std::int32_t usual;
  };
  std::vector<std::string> losses;
  for (const Special& special :
       {Special{"BOS", "bos_token_id", &GgufTokenizer::bos_token_id, usual.bos_id},
        Special{"EOS", "eos_token_id", &GgufTokenizer::eos_token_id, usual.eos_id},
        Special{"unknown", "unknown_token_id", &GgufTokenizer::unknown_token_id, usual.unk_id}}) {
    const bool has_usual = special.usual >= 0 && static_cast<std::size_t>(special.usual) < form.tokens.size();
    if (form.*special.id || !has_usual || out.has(make_key(special.key))) continue;
    form.*special.id = special.usual;
    losses.push_back(fmt::format("llama.cpp uses token {}, {}, as the {} token that the vocabulary lacks",
                                 special.usual, to_json(Value(form.tokens[static_cast<std::size_t>(special.usual)])),
                                 special.name));
  }
  return losses;
}

}  // namespace

std::vector<std::string> write_vocabulary(const Model& model, const std::string& name, std::uint64_t embeddings,
                                          KeyValues& out) {
  const bool has_more = embeddings > 0 && model.vocabulary->size() > embeddings;
  const std::optional<Vocabulary> fitting =
      has_more ? std::optional(keep_first_tokens(*model.vocabulary, static_cast<std::size_t>(embeddings)))
               : std::nullopt;
  const Vocabulary& vocabulary = fitting ? *fitting : *model.vocabulary;
  GgufForm form = make_gguf_form(vocabulary, name);
  std::vector<std::string> losses = std::move(form.losses);
  if (has_more) {
    losses.push_back(
        fmt::format("the last {} of {} tokens are left out: llama.cpp requires a row of the embedding for each token, "
                    "which these lack",
                    model.vocabulary->size() - embeddings, model.vocabulary->size()));
  }
  if (!form.tokenizer) return losses;
  pad_tokens(*form.tokenizer, embeddings);
  std::ranges::move(set_default_ids(*form.tokenizer, out), std::back_inserter(losses));
  write_gguf_tokenizer(*form.tokenizer, vocabulary, out);
  std::size_t id = 0;
  while (id < vocabulary.size() && find_type_after_reading(vocabulary, id) == vocabulary.type(id)) ++id;
  if (id < vocabulary.size() && vocabulary.kind != VocabularyKind::pipeline) {
    losses.emplace_back(
        "gguf stores one id each for BOS, EOS and padding: further tokens of these types become control tokens, and a "
        "control token with such an id gets its type");
  }
  if (embeddings > vocabulary.size()) {
    losses.push_back(
        fmt::format("the vocabulary gets {} more unused tokens: llama.cpp needs one for each row of the embedding",
                    embeddings - vocabulary.size()));
  }
  return losses;
}

}  // namespace poise::gguf
