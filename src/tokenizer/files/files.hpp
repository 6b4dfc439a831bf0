// Reads and makes the tokenizer files of a directory. files.cpp has a row for each kind of file. If a directory has
// several kinds, Poise reads the first row's file, but prefers tokenizer.json to a tokenizer.model of tiktoken.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/source.hpp>

#include "pack/container.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {

// Opens a file of the directory.
using OpenFile = std::function<SourcePtr(std::string_view name)>;

// Lists the names of the files that a tokenizer may have in a directory, except additional templates.
inline constexpr std::array<std::string_view, 11> kTokenizerFiles = {
    "tokenizer.json",    "tokenizer.model",     "tekken.json",           "vocab.json",
    "vocab.txt",         "merges.txt",          "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "chat_template.json"};

// Returns the sorted names of the templates in the directory's folder additional_chat_templates:
// "additional_chat_templates/rag.jinja".
std::vector<std::string> find_additional_templates(const Container& directory);

// Returns the names of the files by which a directory's tokenizer is found: "tokenizer.model", "tokenizer.json", ...
std::vector<std::string> list_tokenizer_files();

struct DirectoryVocabulary {
  Vocabulary vocabulary;
  std::vector<std::string> left_out = {};  // texts of listed tokens for which the model has no rows
};

// Reads the vocabulary of a directory; returns std::nullopt if it has no tokenizer files. `rows` is the model's number
// of tokens. Leaves out tokens that only tokenizer_config.json or added_tokens.json lists, if their ids are `rows` and
// above. Throws the errors of opening and reading the files.
std::optional<DirectoryVocabulary> read_tokenizer_files(const Container& directory, const OpenFile& open,
                                                        std::uint64_t rows);

// Does the same for files that are open already. Ignores files that are not a tokenizer's.
std::optional<DirectoryVocabulary> read_tokenizer_files(std::span<const DirectoryFile> files, std::uint64_t rows);

// Describes how a class of transformers that reads vocab.json and merges.txt cuts texts, because neither file states
// this. files.cpp has a row for each "tokenizer_class" of tokenizer_config.json that Poise supports.
struct TokenizerClass {
  std::string_view name;        // the class without "Fast"; "": tokenizer_config.json names none
  std::string_view normalizer;  // the type of the normalizer; "": none
  std::string_view pre;         // GGUF's name of a pre-tokenizer with one regular expression; "": GPT-2's
  std::string_view bos;         // the text of BOS if no file names one; "": none
};

// Returns null for a class without a row.
const TokenizerClass* find_tokenizer_class(std::string_view name);

// Reads Mistral's tekken.json.
//
//   {"config": {"pattern": regular expression, "default_vocab_size": N, "default_num_special_tokens": S, ...},
//    "vocab": [{"rank": 0, "token_bytes": base64, ...}, ...],
//    "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": true}, ...]}
//
// Ids 0 to S-1 are special tokens; the first N-S tokens of "vocab" follow by rank. Two tokens merge if their
// concatenation is a token; the concatenation with the lowest rank is made first.

// Throws invalid_file, naming the place.
Vocabulary read_tekken(const Source& source);

// Reads Hugging Face's tokenizer.json (docs/tokenizers.md).
//
//   {"added_tokens": [{"id", "content", "special", ...}], "normalizer", "pre_tokenizer", "post_processor", "decoder",
//    "model": {"type": "BPE", "vocab": {token: id}, "merges": ["a b"] or [["a", "b"]], ...}}
//
// Unigram's "vocab" is [[token, score], ...]. Everything but tokens and merges becomes Vocabulary::pipeline.
//
// Special added tokens get the type control, other added ones user_defined. unk_id is the model's unknown token.
// bos_id, eos_id and pad_id are -1, because tokenizer_config.json names these tokens. Ids that the file skips become
// unused tokens without text.
//
// Throws invalid_file, naming the place: for invalid JSON, a part of the wrong type, an id or a text that "vocab"
// has twice (Unigram's texts may repeat), an id far larger than the number of tokens, or more tokens or merges than
// Poise allows.
Vocabulary read_tokenizer_json(const Source& source);

// Reads merges.txt: "left right" a line, the pair that merges first on top. Skips lines that begin with #version.
// Throws invalid_file, naming the line.
MergeList read_merges(const Source& source);

// Throws invalid_file for a file that is too large for a vocabulary.
void check_vocabulary_size(const Source& source);

// Returns true when a file begins as Hugging Face's library writes tokenizer.json, whatever its name is.
bool looks_like_tokenizer_json(const Source& source);

// Holds what vocab.json and merges.txt do not state: how to cut texts, and the special tokens.
struct Gpt2Options {
  bool add_prefix_space = false;          // true to put a space in front of a text
  std::string_view normalizer = "";       // the type of the normalizer; "": none
  std::string_view expression = "";       // cuts words; "": GPT-2's
  std::vector<std::string> special = {};  // texts of special tokens; only those in vocab.json count
  Value::Array added = {};                // added tokens, in the form of tokenizer.json
};
// Reads GPT-2's own files: vocab.json, {token: id}, and merges.txt, "left right" a line, the first merge on top. Throws
// as read_tokenizer_json().
Vocabulary read_vocab_and_merges(const Source& vocab, const Source& merges, const Gpt2Options& options);

// Sets the ids of BOS, EOS, padding and the unknown token, and the chat template, as tokenizer_config.json states them.
void apply_tokenizer_config(Vocabulary& vocabulary, const Attributes& config);

// Holds a vocabulary as the files of a Hugging Face directory.
struct TokenizerFiles {
  std::vector<TokenizerFile> files;
  std::vector<std::string> losses;  // one sentence each
};

// Makes tokenizer.json, tokenizer.model or both, tokenizer_config.json, and the other files that the vocabulary keeps;
// no files for Tiny Llama's kind. The losses name the parts of the vocabulary that these files cannot hold.
TokenizerFiles make_tokenizer_files(const Vocabulary& vocabulary);

// Makes tokenizer.json. Writes every field that Hugging Face's library requires, and lists merges that follow from
// scores. Appends a sentence to `losses` for each part that the file leaves out. Throws unsupported for tokens that are
// not UTF-8 and for too many merges, invalid_file for an inconsistent pipeline. Requires: the vocabulary's kind is
// pipeline.
std::string format_tokenizer_json(const Vocabulary& vocabulary, std::vector<std::string>& losses);

// Returns tokenizer_config.json: special tokens by their texts, the chat template, the longest sequence, the class of
// transformers. If the vocabulary was read with such a file, keeps its keys and values, except those that contradict
// the vocabulary's tokens.
Attributes make_tokenizer_config(const Vocabulary& vocabulary);

// Clears Vocabulary::tokenizer_config if make_tokenizer_config() makes the same content without it.
void drop_usual_config(Vocabulary& vocabulary);

// Returns the keys of Vocabulary::tokenizer_config whose values differ from those that make_tokenizer_config() makes
// without it. Leaves out the keys that name or list tokens, and add_bos_token, add_eos_token and legacy.
Attributes find_config_besides_tokens(const Vocabulary& vocabulary);

// Reads Tiny Llama's tokenizer files (docs/formats/tiny-llama.md).
//
//   vocab.txt    a token a line, perhaps followed by white space and its id; a missing id is the previous line's id
//                plus 1
//   merges.txt   see read_merges()
//
// Ids 0 to 3 are <unk>, <pad>, <bos> and <eos>, whether the file lists them or not.

// Throws invalid_file, naming file, line and offset: for an id that is negative, taken, or far larger than the number
// of lines; for a special token with another id; for a repeated token; for a line of merges that is not a pair; for
// more tokens or merges than Poise allows.
Vocabulary read_byte_pair_vocabulary(const Source& vocab, const Source& merges);

}  // namespace poise
