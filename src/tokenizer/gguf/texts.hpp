// What tokenizer_config.json says beside the tokens, in keys of a GGUF file's metadata: chat templates, in llama.cpp's
// keys, and the rest as JSON text, in one of Poise; and files beside it, in
// another one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <poise/value.hpp>

namespace poise {

inline constexpr std::string_view kGgufChatTemplate = "tokenizer.chat_template";    // and ".NAME" after it
inline constexpr std::string_view kGgufChatTemplates = "tokenizer.chat_templates";  // the names
inline constexpr std::string_view kGgufTokenizerConfig = "poise.tokenizer_config";
inline constexpr std::string_view kGgufTokenizerFiles = "poise.tokenizer_files";

// A chat template in llama.cpp's keys: the text; or of a list the one named "default", the others with their names,
// in which "_" stands for all but letters and digits, and the array of these names.
Attributes gguf_chat_template(const Value& chat_template);

// The text of kGgufTokenizerConfig: the keys of tokenizer_config.json, and the chat template where
// gguf_chat_template() does not say all of it. Empty: nothing.
std::string gguf_tokenizer_config(const Value& chat_template, const Attributes& tokenizer_config);

// The text of kGgufTokenizerFiles: Vocabulary::files as JSON. Empty: there are none.
std::string gguf_tokenizer_files(const Attributes& files);

// The way back.
struct GgufTexts {
  Value chat_template;
  Attributes tokenizer_config;
  Attributes files;
};
// Throws invalid_file, naming `path` and the key, for a text of Poise's keys that is no JSON object, and for files of
// other names.
GgufTexts gguf_texts(std::span<const Attributes::Entry> metadata, const std::string& path);

// Does gguf_texts() read this key?
bool is_gguf_text_key(std::string_view key);

}  // namespace poise
