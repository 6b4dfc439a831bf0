// What a GGUF file says of its tokenizer, as a Vocabulary: the same pipeline that a tokenizer.json would have.
//
// GGUF names an algorithm (tokenizer.ggml.model) and, for BPE, how text is cut first (tokenizer.ggml.pre); what the
// names mean is in tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// The metadata keys "tokenizer.ggml.*" of those names, and "general.name". Empty: the file does not have it.
struct GgufTokenizer {
  std::string model;         // "llama", "gpt2", "bert", "t5", "gemma4"
  std::string pre;           // "llama-bpe", "qwen2", ...; of gpt2
  std::string general_name;  // decides which special tokens of a Phi-3 take the white space to their right
  std::vector<std::string> tokens;
  std::vector<float> scores;             // none, or one for each token
  std::vector<std::int32_t> token_type;  // the same: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges;       // "a b"
  std::optional<std::int32_t> bos_token_id = {};
  std::optional<std::int32_t> eos_token_id = {};
  std::optional<std::int32_t> unknown_token_id = {};
  std::optional<std::int32_t> padding_token_id = {};
  std::optional<std::int32_t> seperator_token_id = {};  // as GGUF spells it
  std::optional<std::int32_t> cls_token_id = {};
  std::optional<bool> add_bos_token = {};
  std::optional<bool> add_eos_token = {};
  std::optional<bool> add_space_prefix = {};
  std::optional<bool> remove_extra_whitespaces = {};
  std::optional<bool> lowercase = {};     // "normalizer.lowercase"; of bert
  std::string precompiled_charsmap = {};  // bytes; of t5
  Value chat_template = {};
  Attributes tokenizer_config = {};  // the other keys of tokenizer_config.json
  Attributes files = {};             // Vocabulary::files
};

// The facts in a model's attributes, where a GGUF file's metadata are that makes no vocabulary of its own. Nothing
// where there are none. Throws invalid_file for one of the wrong type.
std::optional<GgufTokenizer> gguf_tokenizer(const Attributes& attributes);
bool has_gguf_tokenizer(const Attributes& attributes);

// Is it an attribute that gguf_tokenizer() reads, or the longest sequence, which files of Poise have beside these?
bool is_gguf_tokenizer_key(std::string_view key);

// Does llama.cpp find the texts of such tokens in a prompt, wherever they are? Of control, user-defined and unknown
// ones. Nothing: no type, as normal.
bool gguf_finds(std::optional<TokenType> type);

// Does such a token take the white space to its right? GGUF does not say it; `general_name` does: Phi-3's take it, but
// for a few.
bool gguf_takes_space(std::string_view text, const std::string& general_name);

// The tokens of a vocabulary that gguf_finds() is true of, as tokenizer.json lists "added_tokens". `general_name`: see
// above.
Value::Array gguf_added_tokens(const Vocabulary& vocabulary, const std::string& general_name);

// The vocabulary of a model: its own, or what its attributes describe. Nothing where it has none.
std::optional<Vocabulary> vocabulary_of(const Model& model);

// Throws unsupported for an algorithm or a way to cut that is not known, naming it; invalid_file for lists of different
// lengths, an id that the vocabulary does not have, and merges that are no two tokens.
Vocabulary vocabulary_of(GgufTokenizer gguf);

}  // namespace poise
