// Mistral's tekken.json as a Vocabulary.
//
//   {"config": {"pattern": regular expression, "default_vocab_size": N, "default_num_special_tokens": S, ...},
//    "vocab": [{"rank": 0, "token_bytes": base64, ...}, ...],
//    "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": true}, ...]}
//
// Ids 0 to S-1 are special tokens; the first N-S tokens of "vocab" follow by rank. Two tokens merge if their
// concatenation is a token, the one of the lowest rank first.
#pragma once

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// Throws invalid_file, naming the place.
Vocabulary read_tekken(const Source& source);

}  // namespace poise
