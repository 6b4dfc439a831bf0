// Reads and writes SentencePiece's tokenizer.model.
//
// The file is one protocol buffer message (syntax/protobuf.hpp), ModelProto. The fields read here:
//
//   ModelProto     1 pieces (repeated)   2 trainer_spec   3 normalizer_spec   5 denormalizer_spec
//   SentencePiece  1 piece (text)   2 score (float)   3 type (1 normal, 2 unknown, 3 control, 4 user_defined, 5 unused,
//                  6 byte)
//   TrainerSpec    3 model_type (1 unigram, 2 bpe)   24 treat_whitespace_as_suffix   35 byte_fallback   45 unk_piece
//                  46 bos_piece   47 eos_piece   48 pad_piece   (written, too: 4 vocab_size, 40 to 43 the ids of these)
//   NormalizerSpec 1 name   2 precompiled_charsmap   3 add_dummy_prefix   4 remove_extra_whitespaces
//                  5 escape_whitespaces
//
// Other fields are skipped. Token ids are the order of the pieces.
#pragma once

#include <string>

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// bos_id, eos_id and pad_id are the control pieces with those names and get the types bos, eos and pad; -1 if missing.
// Vocabulary::normalizer is "identity" only if text is tokenized unchanged; otherwise it names the normalization that
// Poise would have to apply.
//
// Throws invalid_file, naming the field and its offset, where SentencePiece rejects the file, too (no unknown piece, an
// empty or repeated piece, missing byte pieces); unsupported for word and character models.
Vocabulary read_sentencepiece(const Source& source);

// Returns the file of a vocabulary. Its normalizer is identity, whatever the vocabulary has; SentencePiece rejects the
// file where read_sentencepiece() does. Requires: the vocabulary's kind is one of SentencePiece's.
std::string write_sentencepiece(const Vocabulary& vocabulary);

}  // namespace poise
