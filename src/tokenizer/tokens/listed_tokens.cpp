#include "tokenizer/tokens/listed_tokens.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "model/limits.hpp"
#include "syntax/fields.hpp"

namespace poise {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "bos_token", "eos_token", "unk_token",  "sep_token",
    "pad_token", "cls_token", "mask_token", "additional_special_tokens"};
constexpr std::string_view kExtra =
    "extra_special_tokens";  // an object with names as keys; since transformers 5 also a list

[[noreturn]] void fail(const JsonFile& file, const std::string& problem) {
  throw Error(ErrorKind::invalid_file, problem, file.path);
}

void check_id(const JsonFile& file, std::string_view what, std::uint64_t id) {
  if (id >= kMaxTokens)
    fail(file, fmt::format("{}: the id is {}, at most {} tokens are allowed", what, id, kMaxTokens));
}

using ById = std::map<std::uint64_t, Attributes>;

// Reads added_tokens_decoder: {"32000": {"content": "<|im_end|>", "special": true, ...}}.
void add_tokens_by_id(const JsonFile& config, ById& tokens) {
  constexpr std::string_view kKey = "added_tokens_decoder";
  const Value* value = config.object.find(kKey);
  if (value == nullptr || *value == Value()) return;
  const auto* map = value->get_if<Attributes>();
  if (map == nullptr) fail(config, fmt::format("{}: expected an object", kKey));
  for (const auto& [key, token] : *map) {
    const std::string what = fmt::format("{}: \"{}\"", kKey, key);
    std::uint64_t id = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc() || end != key.data() + key.size()) fail(config, what + ": expected an id");
    check_id(config, what, id);
    const auto* fields = token.get_if<Attributes>();
    if (get_member<std::string>(fields, "content") == nullptr)
      fail(config, what + ": expected an object with \"content\"");
    Attributes entry{{"id", id}};
    for (const auto& [name, field] : *fields) {
      if (name != "id") entry.set(name, field);
    }
    if (!tokens.emplace(id, std::move(entry)).second) fail(config, what + ": the id appears twice");
  }
}

// Reads added_tokens.json: {"<|im_end|>": 32000}. Ignores ids and texts that `tokens` has.
void add_tokens_by_text(const JsonFile& added, const std::vector<std::string>& special, ById& tokens) {
  std::unordered_set<std::string> known;
  for (const auto& [id, token] : tokens) known.insert(*token.get_if<std::string>("content"));
  ById older;
  for (const auto& [text, value] : added.object) {
    const auto* id = value.get_if<std::uint64_t>();
    if (id == nullptr) fail(added, fmt::format("\"{}\": expected an id", text));
    check_id(added, fmt::format("\"{}\"", text), *id);
    const bool is_special = std::ranges::find(special, text) != special.end();
    if (!older.emplace(*id, make_listed_token(*id, text, is_special)).second)
      fail(added, fmt::format("\"{}\": another token has the id {}", text, *id));
    if (known.contains(text)) older.erase(*id);
  }
  tokens.merge(older);
}

// Returns the type of a listed token; `before` is the type that its id had. Control tokens and the unknown token keep
// their types. A byte token does not, because its new text does not stand for a byte.
TokenType choose_listed_type(const Value& token, TokenType before) {
  const bool replaced = before == TokenType::normal || before == TokenType::unused ||
                        before == TokenType::user_defined || before == TokenType::byte;
  if (!replaced) return before;
  const auto* special = get_member<bool>(token, "special");
  return special != nullptr && *special ? TokenType::control : TokenType::user_defined;
}

// Returns the vocabulary with the texts, scores and types of the listed `tokens` at their ids, which are the keys.
Vocabulary rename_tokens(const Vocabulary& vocabulary, const std::map<std::uint64_t, const Value*>& tokens) {
  Vocabulary result(vocabulary.settings());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto found = tokens.find(id);
    if (found == tokens.end()) {
      result.add(vocabulary.text(id), vocabulary.score(id), vocabulary.type(id));
    } else {
      result.add(read_listed_text(*found->second), kListedScore,
                 choose_listed_type(*found->second, vocabulary.type(id)));
    }
  }
  return result;
}

}  // namespace

const std::string* find_named_text(const Value& value) {
  const auto* text = value.get_if<std::string>();
  return text != nullptr ? text : get_member<std::string>(value, "content");
}

const std::string* find_named_text(const Attributes& config, std::string_view key) {
  const Value* value = config.find(key);
  return value == nullptr ? nullptr : find_named_text(*value);
}

std::int32_t find_first_id(const Vocabulary& vocabulary, std::string_view text) {
  std::size_t id = 0;
  while (id < vocabulary.size() && vocabulary.text(id) != text) ++id;
  return id < vocabulary.size() ? static_cast<std::int32_t>(id) : -1;
}

bool read_flag(const Attributes& config, std::string_view key, bool usual) {
  const auto* found = config.get_if<bool>(key);
  return found == nullptr ? usual : *found;
}

Attributes add_special_names(Attributes config, const Attributes& special_map) {
  for (const std::string_view key : kNames) {
    const Value* value = special_map.find(key);
    if (value != nullptr && config.find(key) == nullptr) config.set(std::string(key), *value);
  }
  return config;
}

std::vector<std::string> collect_special_texts(const JsonFile& config, const JsonFile& special_map) {
  std::vector<std::string> texts;
  const auto add = [&](const Value& value) {
    if (const std::string* text = find_named_text(value);
        text != nullptr && std::ranges::find(texts, *text) == texts.end())
      texts.push_back(*text);
  };
  for (const JsonFile* file : {&special_map, &config}) {
    for (const auto& [key, value] : file->object) {
      if (std::ranges::find(kNames, key) == kNames.end() && key != kExtra) continue;
      add(value);
      if (const auto* list = value.get_if<Value::Array>()) std::ranges::for_each(*list, add);
      if (const auto* by_name = value.get_if<Attributes>(); by_name != nullptr && key == kExtra) {
        for (const auto& [name, token] : *by_name) add(token);
      }
    }
  }
  return texts;
}

Value::Array read_listed_tokens(const JsonFile& config, const JsonFile& added,
                                const std::vector<std::string>& special) {
  ById tokens;
  add_tokens_by_id(config, tokens);
  add_tokens_by_text(added, special, tokens);
  Value::Array list;
  for (auto& [id, entry] : tokens) list.emplace_back(std::move(entry));
  return list;
}

Attributes make_listed_token(std::uint64_t id, std::string_view text, bool is_special, bool strips_right) {
  return {{"id", id},
          {"content", text},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", strips_right},
          {"normalized", false},
          {"special", is_special}};
}

Value keep_listed_ids_below(const Value& decoder, std::uint64_t size) {
  const auto* map = decoder.get_if<Attributes>();
  if (map == nullptr) return decoder;
  std::vector<Attributes::Entry> kept;
  std::ranges::copy_if(*map, std::back_inserter(kept), [&](const Attributes::Entry& entry) {
    return parse_number_text<std::uint64_t>(entry.first).value_or(0) < size;
  });
  return Attributes::from_unique(std::move(kept));
}

std::uint64_t read_listed_id(const Value& token) { return *get_member<std::uint64_t>(token, "id"); }
const std::string& read_listed_text(const Value& token) { return *find_named_text(token); }

void add_listed_tokens(Vocabulary& vocabulary, Value::Array listed, const std::string& path) {
  std::erase_if(listed, [](const Value& token) { return read_listed_text(token).empty(); });
  if (listed.empty()) return;
  const std::uint64_t last = read_listed_id(listed.back());
  if (!is_dense(last + 1, vocabulary.size() + listed.size())) {
    throw Error(
        ErrorKind::invalid_file,
        fmt::format("\"{}\": the id {} is far larger than the number of tokens", read_listed_text(listed.back()), last),
        path);
  }
  std::map<std::uint64_t, const Value*> others;  // tokens that get another text
  for (const Value& token : listed) {
    const std::uint64_t id = read_listed_id(token);
    if (id < vocabulary.size() && vocabulary.text(id) != read_listed_text(token)) others.emplace(id, &token);
  }
  if (!others.empty()) vocabulary = rename_tokens(vocabulary, others);
  for (const Value& token : listed) {
    const std::uint64_t id = read_listed_id(token);
    if (id < vocabulary.size()) continue;
    while (vocabulary.size() < id)
      vocabulary.add(fmt::format("[PAD{}]", vocabulary.size()), kListedScore, TokenType::unused);
    vocabulary.add(read_listed_text(token), kListedScore, choose_listed_type(token, TokenType::unused));
  }
  vocabulary.pipeline.set("added_tokens", std::move(listed));
}

bool is_dense(std::uint64_t size, std::uint64_t tokens) {
  constexpr std::uint64_t kSpareIds = 4096;  // ids without a token
  return size <= 16 * tokens + kSpareIds;
}

}  // namespace poise
