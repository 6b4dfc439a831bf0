#include "tokenizer/tokens/kept_files.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "io/directory.hpp"
#include "syntax/element_value.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"

namespace poise {
namespace {

constexpr std::string_view kTemplateEnding = ".jinja";
constexpr std::string_view kTemplateKey = "chat_template";
constexpr std::size_t kMaxNameBytes = 200;
constexpr std::size_t kMaxFiles = 256;

std::string_view get_template_name(std::string_view file) {
  file.remove_prefix(kAdditionalTemplates.size() + 1);
  file.remove_suffix(kTemplateEnding.size());
  return file;
}

// Parses a JSON object; returns std::nullopt if the text is not one.
std::optional<Attributes> parse_object(const std::string& text, std::string_view name) {
  try {
    Value value = parse_json(text, std::string(name));
    if (value.get_if<Attributes>() != nullptr) return std::move(value).take<Attributes>();
  } catch (const Error&) {
  }
  return std::nullopt;
}

Attributes remove_template(Attributes config) {
  config.erase(kTemplateKey);
  return config;
}

class KeptFiles {
 public:
  KeptFiles(const Vocabulary& vocabulary, Attributes config)
      : vocabulary_(vocabulary),
        config_(std::move(config)),
        uses_kept_templates_(vocabulary.chat_template != Value() &&
                             read_kept_template(vocabulary.files) == vocabulary.chat_template) {}

  std::vector<TokenizerFile> collect() && {
    if (uses_kept_templates_) config_.erase(kTemplateKey);
    add(kTokenizerConfig, make_config_text());
    for (const auto& [name, value] : vocabulary_.files) {
      const auto* text = value.get_if<std::string>();
      if (text == nullptr || name == kTokenizerConfig) continue;
      if (name == kSpecialTokensMap) {
        add(name, make_special_map(*text));
      } else if (name == kChatTemplateJson ? vocabulary_.chat_template != Value() : uses_kept_templates_) {
        add(name, *text);
      }
    }
    return std::move(files_);
  }

 private:
  void add(std::string_view name, std::string text) { files_.push_back({std::string(name), std::move(text)}); }

  // Returns the text of the kept tokenizer_config.json if it has the same keys and values as `config_`, else a new
  // text. The comparison leaves out the chat template if the kept template files have it.
  std::string make_config_text() const {
    const std::string* text = vocabulary_.files.get_if<std::string>(kTokenizerConfig);
    const auto kept = text == nullptr ? std::nullopt : parse_object(*text, kTokenizerConfig);
    const bool is_same = kept && (uses_kept_templates_ ? have_same_entries(remove_template(*kept), config_)
                                                       : have_same_entries(*kept, config_));
    return is_same ? *text : to_json(config_, 2) + "\n";
  }

  // Returns special_tokens_map.json without special tokens (kNamedTokens) that contradict the vocabulary. Keeps those
  // that tokenizer_config.json names, too, because that file takes precedence.
  std::string make_special_map(const std::string& text) const {
    const auto map = parse_object(text, kSpecialTokensMap);
    // Poise reads special ids from this file only for pipelines.
    if (!map || vocabulary_.kind != VocabularyKind::pipeline) return text;
    Attributes left = *map;
    for (const NamedToken& named : kNamedTokens) {
      const std::string* token = find_named_text(*map, named.key);
      if (token != nullptr && config_.find(named.key) == nullptr &&
          find_first_id(vocabulary_, *token) != vocabulary_.*named.id)
        left.erase(named.key);
    }
    return left.size() == map->size() ? text : to_json(left, 2) + "\n";
  }

  const Vocabulary& vocabulary_;
  Attributes config_;
  bool uses_kept_templates_;
  std::vector<TokenizerFile> files_;
};

}  // namespace

bool is_additional_template(std::string_view name) {
  if (!name.starts_with(kAdditionalTemplates) || !name.ends_with(kTemplateEnding) ||
      name.size() <= kAdditionalTemplates.size() + 1 + kTemplateEnding.size() ||
      name[kAdditionalTemplates.size()] != '/')
    return false;
  const std::string_view rest = get_template_name(name);
  return rest.size() <= kMaxNameBytes && is_utf8(rest) && rest.front() != '.' && is_plain_file_name(rest);
}

std::string find_problem_with_files(const Attributes& files) {
  if (files.size() > kMaxFiles) return fmt::format("more than {} files", kMaxFiles);
  for (const auto& [name, text] : files) {
    const bool known = name == kChatTemplate || name == kChatTemplateJson || name == kSpecialTokensMap ||
                       name == kTokenizerConfig || is_additional_template(name);
    if (!known) return fmt::format("{} is not the name of a tokenizer file", to_json(name));
    if (text.get_if<std::string>() == nullptr) return fmt::format("{}: expected text", name);
  }
  return {};
}

Attributes read_kept_object(const Attributes& files, std::string_view name) {
  const std::string* text = files.get_if<std::string>(name);
  return text == nullptr ? Attributes() : parse_object(*text, name).value_or(Attributes());
}

Value read_kept_template(const Attributes& files) {
  Value::Array list;
  const std::string* usual = files.get_if<std::string>(kChatTemplate);
  if (usual != nullptr) list.emplace_back(Attributes{{"name", "default"}, {"template", *usual}});
  for (const auto& [name, text] : files) {
    if (is_additional_template(name))
      list.emplace_back(Attributes{{"name", get_template_name(name)}, {"template", text}});
  }
  if (list.empty()) return {};
  return usual != nullptr && list.size() == 1 ? Value(*usual) : Value(std::move(list));
}

std::vector<TokenizerFile> make_config_and_kept_files(const Vocabulary& vocabulary, Attributes config) {
  return KeptFiles(vocabulary, std::move(config)).collect();
}

}  // namespace poise
