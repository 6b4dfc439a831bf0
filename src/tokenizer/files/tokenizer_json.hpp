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

// Types of tokens: added ones are control tokens where they are special, else user-defined; the model's unknown token
// is unknown. bos_id and the like are -1: tokenizer_config.json names these tokens. Ids that the file leaves out become
// unused tokens without text.
//
// Throws invalid_file, naming the place: no JSON, a part of the wrong type, an id that two tokens have or that is far
// larger than their number.
Vocabulary read_tokenizer_json(const Source& source);

// Does it begin as Hugging Face's library writes it, whatever its name is?
bool looks_like_tokenizer_json(const Source& source);

// GPT-2's own files: vocab.json, {token: id}, and merges.txt, "left right" a line, the pair that is merged first on
// top. How text is cut is in neither: the options say it. Throws as read_tokenizer_json().
struct Gpt2Options {
  bool add_prefix_space = false;          // a space goes in front of a text
  std::string_view normalizer = "";       // its type; "": none
  std::string_view expression = "";       // cuts words; "": GPT-2's
  std::vector<std::string> special = {};  // texts of special tokens; those in vocab.json count
  Value::Array added = {};                // as tokenizer.json lists "added_tokens"
};
Vocabulary read_vocab_and_merges(const Source& vocab, const Source& merges, const Gpt2Options& options);

// What tokenizer_config.json says: which tokens begin, end and fill a text, and the chat template.
void take_tokenizer_config(Vocabulary& vocabulary, const Attributes& config);

}  // namespace poise
