// Hugging Face's tokenizer.json as a Vocabulary (docs/tokenizers.md).
//
//   {"added_tokens": [{"id", "content", "special", ...}], "normalizer", "pre_tokenizer", "post_processor", "decoder",
//    "model": {"type": "BPE", "vocab": {token: id}, "merges": ["a b"] or [["a", "b"]], ...}}
//
// Unigram's "vocab" is [[token, score], ...]. Everything but tokens and merges becomes Vocabulary::pipeline unchanged.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// Types of tokens: special added tokens are control tokens, other added ones user-defined; the model's unknown token is
// unknown. bos_id and the like are -1: tokenizer_config.json names these tokens. Ids that the file skips become unused
// tokens without text.
//
// Throws invalid_file, naming the place: for invalid JSON, a part of the wrong type, a repeated id, or an id far larger
// than the number of tokens.
Vocabulary read_tokenizer_json(const Source& source);

// True when it begins as Hugging Face's library writes it, under any name.
bool looks_like_tokenizer_json(const Source& source);

// GPT-2's own files: vocab.json, {token: id}, and merges.txt, "left right" a line, the first merge on top. The options
// give what neither has: how to cut text. Throws as read_tokenizer_json().
struct Gpt2Options {
  bool add_prefix_space = false;          // puts a space in front of a text
  std::string_view normalizer = "";       // its type; "": none
  std::string_view expression = "";       // cuts words; "": GPT-2's
  std::vector<std::string> special = {};  // texts of special tokens; those in vocab.json count
  Value::Array added = {};                // as tokenizer.json lists "added_tokens"
};
Vocabulary read_vocab_and_merges(const Source& vocab, const Source& merges, const Gpt2Options& options);

// Takes the beginning, end and padding tokens and the chat template from tokenizer_config.json.
void take_tokenizer_config(Vocabulary& vocabulary, const Attributes& config);

}  // namespace poise
