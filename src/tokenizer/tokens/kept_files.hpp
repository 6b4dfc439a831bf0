// Reads and checks Vocabulary::files, which has a tokenizer's files as they were read. Other formats store them, so
// that a conversion back to a directory restores them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

inline constexpr std::string_view kChatTemplate = "chat_template.jinja";
inline constexpr std::string_view kChatTemplateJson = "chat_template.json";
inline constexpr std::string_view kSpecialTokensMap = "special_tokens_map.json";
inline constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";
inline constexpr std::string_view kAdditionalTemplates = "additional_chat_templates";  // a folder of chat templates

struct TokenizerFile {
  std::string name;
  std::string bytes;
};

// Returns true for "additional_chat_templates/NAME.jinja" if NAME is safe as a file name.
bool is_additional_template(std::string_view name);

// Returns a message that explains why these are not valid Vocabulary::files, whose names become paths; empty if they
// are valid.
std::string find_problem_with_files(const Attributes& files);

// Returns the JSON object in a kept file; empty if the file is missing or has none.
Attributes read_kept_object(const Attributes& files, std::string_view name);

// Returns the chat template as tokenizer_config.json would have it: the text of chat_template.jinja, or a list if there
// are additional templates. Returns null without such files. This template takes precedence over that of
// tokenizer_config.json.
Value read_kept_template(const Attributes& files);

// Returns tokenizer_config.json, with the content `config`, and the kept files that agree with the vocabulary.
std::vector<TokenizerFile> make_config_and_kept_files(const Vocabulary& vocabulary, Attributes config);

}  // namespace poise
