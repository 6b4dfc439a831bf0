// Tokens that the files beside a vocabulary list: tokenizer_config.json ("added_tokens_decoder"), added_tokens.json of
// older directories, and which of them the two and special_tokens_map.json name as special.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// An object of a JSON file, empty where the file is not there.
struct JsonFile {
  std::string path;
  Attributes object = {};
};

// The text by which a file names a token: "<s>", or {"content": "<s>", ...}. Null: neither.
const std::string* named_text(const Value& value);

// tokenizer_config.json with the special tokens that it does not name and special_tokens_map.json does.
Attributes with_names(Attributes config, const Attributes& special_map);

// Texts of special tokens: "bos_token", "eos_token", ..., "additional_special_tokens". In their order, each once.
std::vector<std::string> special_texts(const JsonFile& config, const JsonFile& special_map);

// As tokenizer.json lists "added_tokens", by id: those of added_tokens_decoder with its flags, then those of
// added_tokens.json whose id and text none of these has, found in the raw text and special where `special` has them.
// Throws invalid_file, naming the file and the token: no id, one of kMaxTokens and above, no text, or two tokens of
// added_tokens.json with one id.
Value::Array listed_tokens(const JsonFile& config, const JsonFile& added, const std::vector<std::string>& special);

// Of an item of that list.
std::uint64_t listed_id(const Value& token);
const std::string& listed_text(const Value& token);

// Adds listed_tokens() to a SentencePiece vocabulary: they are found in a text, as Vocabulary::pipeline says then
// ("added_tokens"). Those whose ids the vocabulary has not are appended, with unused tokens "[PAD7]" for ids between
// that none has; where it has the id with another text, the new text is the token's. Both as llama.cpp's converter
// does. A token without a text is found nowhere. Throws invalid_file, naming `path`, for an id that is_dense() is false
// of.
void add_listed_tokens(Vocabulary& vocabulary, Value::Array listed, const std::string& path);

// May a vocabulary have ids below `size`, when a file says `tokens` of them? Memory has to be justified by the file.
bool is_dense(std::uint64_t size, std::uint64_t tokens);

}  // namespace poise
