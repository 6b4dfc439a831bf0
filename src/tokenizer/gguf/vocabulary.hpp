// Converts a GGUF file's tokenizer to a Vocabulary, with the pipeline that its tokenizer.json would have.
//
// GGUF names an algorithm (tokenizer.ggml.model) and, for BPE, a pre-tokenizer (tokenizer.ggml.pre). vocabulary.cpp and
// pre_tokenizers.cpp have a row for each name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// A field NAME holds the value of the metadata key "tokenizer.ggml.NAME". Exceptions are general_name ("general.name"),
// lowercase and strip_accents ("tokenizer.ggml.normalizer.lowercase", ...) and the last three (gguf/texts.hpp). A field
// is empty if its key is missing.
struct GgufTokenizer {
  std::string model;         // "llama", "gpt2", "bert", "t5", "gemma4"
  std::string pre;           // "llama-bpe", "qwen2", ...; used by gpt2
  std::string general_name;  // if it names a Phi-3, most special tokens consume the white space to their right
  std::vector<std::string> tokens;
  std::vector<float> scores;  // none, or one for each token
  std::vector<std::int32_t>
      token_type;  // none, or one for each: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges;  // "a b"
  std::optional<std::int32_t> bos_token_id = {};
  std::optional<std::int32_t> eos_token_id = {};
  std::optional<std::int32_t> unknown_token_id = {};
  std::optional<std::int32_t> padding_token_id = {};
  std::optional<std::int32_t> seperator_token_id = {};  // GGUF's spelling
  std::optional<std::int32_t> cls_token_id = {};
  std::optional<bool> add_bos_token = {};
  std::optional<bool> add_eos_token = {};
  std::optional<bool> add_space_prefix = {};
  std::optional<bool> remove_extra_whitespaces = {};
  std::optional<bool> lowercase = {};      // "normalizer.lowercase"; used by bert
  std::optional<bool> strip_accents = {};  // "normalizer.strip_accents"; used by bert; empty: as lowercase
  std::string precompiled_charsmap = {};   // bytes; used by t5
  Value chat_template = {};
  Attributes tokenizer_config = {};  // the other keys of tokenizer_config.json
  Attributes files = {};             // Vocabulary::files
};

// Reads the tokenizer in a model's attributes: the metadata of a GGUF file from which Poise could not make a
// vocabulary. Returns std::nullopt if there is no tokenizer. Throws invalid_file for wrong types. But an id that is not
// that of a token counts as missing, and a token's type that is not a number becomes 0 (normal).
std::optional<GgufTokenizer> read_gguf_tokenizer(const Attributes& attributes);
bool has_gguf_tokenizer(const Attributes& attributes);

// Lists the keys that read_gguf_tokenizer() reads, without general.name and the keys of texts (is_gguf_text_key()).
// Also lists the key of the longest sequence, which files of Poise store with them.
inline constexpr auto kGgufTokenizerKeys = std::to_array<std::string_view>({
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.cls_token_id",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.precompiled_charsmap",
    "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.normalizer.lowercase",
    "tokenizer.ggml.normalizer.strip_accents",
    "poise.longest_sequence",
});

// Returns true for the keys that describe a tokenizer: kGgufTokenizerKeys, and those of is_gguf_text_key().
bool is_gguf_tokenizer_key(std::string_view key);

// Returns the ids of special tokens that llama.cpp assumes for this algorithm ("llama", ...) and pre-tokenizer if the
// file does not name them. An id is -1 if llama.cpp assumes none.
SpecialIds find_default_gguf_ids(std::string_view model, std::string_view pre);

// Returns true when llama.cpp finds texts of tokens of this type anywhere in a prompt: control, user-defined and
// unknown tokens. A token without a type is normal.
bool is_found_in_prompts(std::optional<TokenType> type);

// Returns true when a token for which is_found_in_prompts() is true consumes the white space to its right. GGUF does
// not store this: llama.cpp assumes it for most tokens of a model whose `general_name` contains Phi-3.
bool consumes_space_in_gguf(std::string_view text, const std::string& general_name);

// Returns the tokens of a vocabulary for which is_found_in_prompts() is true, as tokenizer.json lists "added_tokens".
// `general_name` is as in consumes_space_in_gguf().
Value::Array find_gguf_added_tokens(const Vocabulary& vocabulary, const std::string& general_name);

// Returns the model's vocabulary, or else the one that its attributes describe, or else std::nullopt.
std::optional<Vocabulary> make_vocabulary(const Model& model);

// Converts a GGUF tokenizer. Throws unsupported for an unknown algorithm or pre-tokenizer, naming it; invalid_file for
// lists of different lengths, an id outside the vocabulary, a merge without a space, too many merges, and a tokenizer
// "bert" without an unknown token.
Vocabulary make_vocabulary(GgufTokenizer gguf);

}  // namespace poise
