#include "tokenizer/listed_tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "model/limits.hpp"

namespace poise {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                                    "pad_token", "cls_token", "mask_token", "additional_special_tokens"};

// "<s>", or {"content": "<s>", ...}
const std::string* text_of(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return text;
  const auto* map = value.get_if<Attributes>();
  const Value* content = map == nullptr ? nullptr : map->find("content");
  return content == nullptr ? nullptr : content->get_if<std::string>();
}

[[noreturn]] void fail(const JsonFile& file, const std::string& problem) { throw Error(ErrorKind::invalid_file, problem, file.path); }

void check_id(const JsonFile& file, std::string_view what, std::uint64_t id) {
  if (id >= kMaxTokens) fail(file, fmt::format("{}: the id is {}, at most {} tokens are allowed", what, id, kMaxTokens));
}

using ById = std::map<std::uint64_t, Attributes>;

// {"32000": {"content": "<|im_end|>", "special": true, ...}}
void add_decoder(const JsonFile& config, ById& tokens) {
  constexpr std::string_view kKey = "added_tokens_decoder";
  const Value* value = config.object.find(kKey);
  if (value == nullptr || value->get_if<std::nullptr_t>() != nullptr) return;
  const auto* map = value->get_if<Attributes>();
  if (map == nullptr) fail(config, fmt::format("{}: expected an object", kKey));
  for (const auto& [key, token] : *map) {
    const std::string what = fmt::format("{}: \"{}\"", kKey, key);
    std::uint64_t id = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc() || end != key.data() + key.size()) fail(config, what + ": expected an id");
    check_id(config, what, id);
    const auto* fields = token.get_if<Attributes>();
    const Value* content = fields == nullptr ? nullptr : fields->find("content");
    if (content == nullptr || content->get_if<std::string>() == nullptr) fail(config, what + ": expected an object with \"content\"");
    Attributes entry{{"id", id}};
    for (const auto& [name, field] : *fields) {
      if (name != "id") entry.set(name, field);
    }
    if (!tokens.emplace(id, std::move(entry)).second) fail(config, what + ": the id comes twice");
  }
}

// {"<|im_end|>": 32000}
void add_older(const JsonFile& added, const std::vector<std::string>& special, ById& tokens) {
  std::unordered_set<std::string> known;
  for (const auto& [id, token] : tokens) known.insert(*token.find("content")->get_if<std::string>());
  ById older;
  for (const auto& [text, value] : added.object) {
    const auto* id = value.get_if<std::uint64_t>();
    if (id == nullptr) fail(added, fmt::format("\"{}\": expected an id", text));
    check_id(added, fmt::format("\"{}\"", text), *id);
    const bool is_special = std::ranges::find(special, text) != special.end();
    Attributes entry{{"id", *id},       {"content", text},     {"single_word", false}, {"lstrip", false},
                     {"rstrip", false}, {"normalized", false}, {"special", is_special}};
    if (!older.emplace(*id, std::move(entry)).second) fail(added, fmt::format("\"{}\": another token has the id {}", text, *id));
    if (known.contains(text)) older.erase(*id);
  }
  tokens.merge(older);
}

}  // namespace

std::vector<std::string> special_texts(const JsonFile& config, const JsonFile& special_map) {
  std::vector<std::string> texts;
  const auto add = [&](const Value& value) {
    if (const std::string* text = text_of(value); text != nullptr && std::ranges::find(texts, *text) == texts.end()) texts.push_back(*text);
  };
  for (const JsonFile* file : {&special_map, &config}) {
    for (const auto& [key, value] : file->object) {
      if (std::ranges::find(kNames, key) == kNames.end()) continue;
      add(value);
      if (const auto* list = value.get_if<Value::Array>()) std::ranges::for_each(*list, add);
    }
  }
  return texts;
}

Value::Array listed_tokens(const JsonFile& config, const JsonFile& added, const std::vector<std::string>& special) {
  ById tokens;
  add_decoder(config, tokens);
  add_older(added, special, tokens);
  Value::Array list;
  for (auto& [id, entry] : tokens) list.emplace_back(std::move(entry));
  return list;
}

bool is_dense(std::uint64_t size, std::uint64_t tokens) {
  constexpr std::uint64_t kSpareIds = 4096;  // that no token has
  return size <= 16 * tokens + kSpareIds;
}

}  // namespace poise
