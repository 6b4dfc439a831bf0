// Converts the texts of tokenizer_config.json to keys of a GGUF file's metadata. Chat templates go into llama.cpp's
// keys. The rest, except the tokens, goes as JSON text into a key of Poise; other tokenizer files go into another one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <poise/value.hpp>

namespace poise {

inline constexpr std::string_view kGgufChatTemplate =
    "tokenizer.chat_template";  // other templates have ".NAME" after it
inline constexpr std::string_view kGgufChatTemplates = "tokenizer.chat_templates";  // the names of the other templates
inline constexpr std::string_view kGgufTokenizerConfig = "poise.tokenizer_config";
inline constexpr std::string_view kGgufTokenizerFiles = "poise.tokenizer_files";

// Returns the keys in which llama.cpp stores a chat template. A single template is one key. In a list, the template
// named "default" has that key, the others have keys with their names (with "_" for everything but letters and digits),
// and one more key holds the array of these names.
Attributes make_gguf_chat_template(const Value& chat_template);

// Returns the text of kGgufTokenizerConfig: the keys of tokenizer_config.json, and the chat template if
// make_gguf_chat_template() loses some of it. Returns an empty text if there are no keys and no such template.
std::string format_gguf_tokenizer_config(const Value& chat_template, const Attributes& tokenizer_config);

// Returns the text of kGgufTokenizerFiles: Vocabulary::files as JSON, or an empty text if there are no files.
std::string format_gguf_tokenizer_files(const Attributes& files);

// Holds the values that the three functions above convert.
struct GgufTexts {
  Value chat_template;
  Attributes tokenizer_config;
  Attributes files;
};
// Throws invalid_file, naming `path` and the key, if the text of one of Poise's keys is not a JSON object, or if
// the files of kGgufTokenizerFiles are not valid (find_problem_with_files()).
GgufTexts read_gguf_texts(std::span<const Attributes::Entry> metadata, const std::string& path);

// Returns true for the keys that read_gguf_texts() reads.
bool is_gguf_text_key(std::string_view key);

}  // namespace poise
