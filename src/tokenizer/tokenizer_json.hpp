// Hugging Face's tokenizer.json as a Vocabulary (docs/tokenizers.md).
//
//   {"added_tokens": [{"id", "content", "special", ...}], "normalizer", "pre_tokenizer", "post_processor", "decoder",
//    "model": {"type": "BPE", "vocab": {token: id}, "merges": ["a b"] or [["a", "b"]], ...}}
//
// Unigram's "vocab" is [[token, score], ...]. Everything but tokens and merges becomes Vocabulary::pipeline as it stands.
#pragma once

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// Types of tokens: added ones are control tokens where they are special, else user-defined; the model's unknown token is unknown. bos_id and
// the like are -1: tokenizer_config.json names these tokens. Ids that the file leaves out become unused tokens without text.
//
// Throws invalid_file, naming the place: no JSON, a part of the wrong type, an id that two tokens have or that is far larger than their number.
Vocabulary read_tokenizer_json(const Source& source);

// What tokenizer_config.json says: which tokens begin, end and fill a text, and the chat template.
void take_tokenizer_config(Vocabulary& vocabulary, const Attributes& config);

}  // namespace poise
