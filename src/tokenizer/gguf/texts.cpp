#include "tokenizer/gguf/texts.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "syntax/element_value.hpp"
#include "syntax/fields.hpp"
#include "syntax/json.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

constexpr std::string_view kDefaultTemplate = "default";
constexpr std::string_view kConfigTemplate = "chat_template";  // the key in kGgufTokenizerConfig's JSON
constexpr std::size_t kLongestName = 1024;

bool is_named_template(std::string_view key) {
  return key.size() > kGgufChatTemplate.size() && key.starts_with(kGgufChatTemplate) &&
         key[kGgufChatTemplate.size()] == '.';
}

std::string make_template_key(std::string_view name) {
  std::string key = fmt::format("{}.{}", kGgufChatTemplate, name);
  for (std::size_t i = kGgufChatTemplate.size() + 1; i < key.size(); ++i) {
    if (!is_ascii_alphanumeric(key[i])) key[i] = '_';
  }
  return key;
}

Attributes make_named_template(std::string_view name, const Value& text) {
  return {{"name", name}, {"template", text}};
}

// Returns the chat template that the keys hold: a text or a list.
Value read_template_keys(const Attributes& keys) {
  const Value* usual = keys.find(kGgufChatTemplate);
  Value::Array list;
  if (usual != nullptr) list.emplace_back(make_named_template(kDefaultTemplate, *usual));
  for (const auto& [key, text] : keys) {
    if (is_named_template(key))
      list.emplace_back(make_named_template(std::string_view(key).substr(kGgufChatTemplate.size() + 1), text));
  }
  if (list.size() > (usual == nullptr ? 0 : 1)) return list;
  return usual == nullptr ? Value() : *usual;
}

// Returns the keys that hold templates, or their names. Leaves out a template that is not text.
Attributes select_template_keys(std::span<const Attributes::Entry> metadata) {
  Attributes keys;
  for (const auto& [key, value] : metadata) {
    const bool is_text = value.get_if<std::string>() != nullptr;
    if (key == kGgufChatTemplates || (is_text && (key == kGgufChatTemplate || is_named_template(key))))
      keys.set(key, value);
  }
  return keys;
}

// Returns the JSON object in the text of a key; empty if missing.
Attributes read_json_key(std::span<const Attributes::Entry> metadata, std::string_view key, const std::string& path) {
  const auto found = std::ranges::find(metadata, key, &Attributes::Entry::first);
  const auto* json = found == metadata.end() ? nullptr : found->second.get_if<std::string>();
  if (json == nullptr) return {};
  Value value = parse_json(*json, fmt::format("{}: {}", path, key));
  if (value.get_if<Attributes>() == nullptr)
    throw Error(ErrorKind::invalid_file, fmt::format("{}: expected a JSON object", key), path);
  return std::move(value).take<Attributes>();
}

}  // namespace

Attributes make_gguf_chat_template(const Value& chat_template) {
  Attributes keys;
  if (chat_template.get_if<std::string>() != nullptr) keys.set(std::string(kGgufChatTemplate), chat_template);
  const auto* list = chat_template.get_if<Value::Array>();
  if (list == nullptr) return keys;
  Value::Array names;
  for (const Value& item : *list) {
    const auto* map = item.get_if<Attributes>();
    const std::string* name = get_member<std::string>(map, "name");
    const std::string* text = get_member<std::string>(map, "template");
    if (name == nullptr || text == nullptr || name->empty() || name->size() > kLongestName) continue;
    const std::string key = *name == kDefaultTemplate ? std::string(kGgufChatTemplate) : make_template_key(*name);
    if (keys.find(key) != nullptr) continue;
    keys.set(key, *text);
    if (*name != kDefaultTemplate) names.emplace_back(key.substr(kGgufChatTemplate.size() + 1));
  }
  if (!names.empty()) keys.set(std::string(kGgufChatTemplates), std::move(names));
  return keys;
}

std::string format_gguf_tokenizer_config(const Value& chat_template, const Attributes& tokenizer_config) {
  Attributes config = tokenizer_config;
  if (read_template_keys(make_gguf_chat_template(chat_template)) != chat_template)
    config.set(std::string(kConfigTemplate), chat_template);
  return config.empty() ? std::string() : to_json(config);
}

std::string format_gguf_tokenizer_files(const Attributes& files) {
  return files.empty() ? std::string() : to_json(files);
}

GgufTexts read_gguf_texts(std::span<const Attributes::Entry> metadata, const std::string& path) {
  const Attributes keys = select_template_keys(metadata);
  GgufTexts texts{read_template_keys(keys), read_json_key(metadata, kGgufTokenizerConfig, path),
                  read_json_key(metadata, kGgufTokenizerFiles, path)};
  if (const std::string problem = find_problem_with_files(texts.files); !problem.empty())
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", kGgufTokenizerFiles, problem), path);
  // llama.cpp's keys take precedence over the template in Poise's key, because an edit may have changed them.
  if (const Value* whole = texts.tokenizer_config.find(kConfigTemplate)) {
    if (have_same_entries(make_gguf_chat_template(*whole), keys)) texts.chat_template = *whole;
    texts.tokenizer_config.erase(kConfigTemplate);
  }
  return texts;
}

bool is_gguf_text_key(std::string_view key) {
  return key == kGgufChatTemplate || key == kGgufChatTemplates || key == kGgufTokenizerConfig ||
         key == kGgufTokenizerFiles || is_named_template(key);
}

}  // namespace poise
