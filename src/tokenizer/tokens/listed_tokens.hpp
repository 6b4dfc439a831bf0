// Reads the tokens that are listed outside of the vocabulary's file: in tokenizer_config.json ("added_tokens_decoder")
// and in added_tokens.json of older directories. tokenizer_config.json and special_tokens_map.json also name the
// special tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Holds an object of a JSON file, empty if the file is missing.
struct JsonFile {
  std::string path;
  Attributes object = {};
};

// Returns the text by which a file names a token: "<s>", or {"content": "<s>", ...}; null for other values.
const std::string* find_named_text(const Value& value);
const std::string* find_named_text(const Attributes& config, std::string_view key);

// Describes a special token: the key of its text in tokenizer_config.json, the field with its id, and its usual text in
// tokenizer.model.
struct NamedToken {
  const char* key;
  std::int32_t Vocabulary::*id;
  std::string_view usual;
};
inline constexpr std::array kNamedTokens = std::to_array<NamedToken>({{"bos_token", &Vocabulary::bos_id, "<s>"},
                                                                      {"eos_token", &Vocabulary::eos_id, "</s>"},
                                                                      {"pad_token", &Vocabulary::pad_id, "<pad>"},
                                                                      {"unk_token", &Vocabulary::unk_id, "<unk>"}});

// Returns the id of the first token with that text, or -1. Compares the texts of all tokens in order.
std::int32_t find_first_id(const Vocabulary& vocabulary, std::string_view text);

// Returns a flag of a configuration; `usual` if it is missing or of another type.
bool read_flag(const Attributes& config, std::string_view key, bool usual);

// Completes tokenizer_config.json with special tokens from special_tokens_map.json.
Attributes add_special_names(Attributes config, const Attributes& special_map);

// Returns the texts of special tokens, each once: "bos_token", "eos_token", ..., "additional_special_tokens",
// "extra_special_tokens". Those of special_tokens_map.json come first.
std::vector<std::string> collect_special_texts(const JsonFile& config, const JsonFile& special_map);

// Returns tokens in the form of tokenizer.json's "added_tokens", sorted by id. The tokens of added_tokens_decoder keep
// their flags. A token of added_tokens.json counts only if added_tokens_decoder has neither its id nor its text; such a
// token is found in the raw text, and is special if `special` has it. Throws invalid_file, naming the file and the
// token: for a missing id, an id of kMaxTokens and above, a missing text, or two tokens of a file with the same id.
Value::Array read_listed_tokens(const JsonFile& config, const JsonFile& added, const std::vector<std::string>& special);

// Returns added_tokens_decoder without ids of `size` and above. Returns other values than an object unchanged.
Value keep_listed_ids_below(const Value& decoder, std::uint64_t size);

// Listed tokens get this score in SentencePiece vocabularies, as in llama.cpp's converter.
inline constexpr float kListedScore = -1000;

// Makes an item of read_listed_tokens()'s list. The token is found in the raw text, also inside words.
Attributes make_listed_token(std::uint64_t id, std::string_view text, bool is_special, bool strips_right = false);

// Each function returns the id or the text of an item of read_listed_tokens()'s list.
std::uint64_t read_listed_id(const Value& token);
const std::string& read_listed_text(const Value& token);

// Adds the tokens of read_listed_tokens() to a SentencePiece vocabulary, and to "added_tokens" of its pipeline, so that
// texts are searched for them. Appends new ids, with unused tokens "[PAD7]" in the gaps. Replaces the text of an
// existing id. Ignores tokens without a text. llama.cpp's converter does the same. Throws invalid_file, naming `path`,
// for an id for which is_dense() is false.
void add_listed_tokens(Vocabulary& vocabulary, Value::Array listed, const std::string& path);

// Returns true when a file with `tokens` tokens justifies the memory for ids below `size`.
bool is_dense(std::uint64_t size, std::uint64_t tokens);

}  // namespace poise
