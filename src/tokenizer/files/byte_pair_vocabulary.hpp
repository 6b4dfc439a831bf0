// Tiny Llama's tokenizer files as a Vocabulary (docs/formats/tiny-llama.md).
//
//   vocab.txt    a token a line, perhaps white space and its id after it; without an id it is the line's before plus
//                one
//   merges.txt   "left right" a line, the pair that is merged first on top; a line that begins with #version is skipped
//
// Ids 0 to 3 are <unk>, <pad>, <bos> and <eos>, whether the file lists them or not.
#pragma once

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// Throws invalid_file, naming file, line and offset: for an id that is taken, belongs to one of the four, or is far
// larger than the number of lines; for a repeated token; for a line of merges that is not a pair.
Vocabulary read_byte_pair_vocabulary(const Source& vocab, const Source& merges);

}  // namespace poise
