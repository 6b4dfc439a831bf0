// Reads and writes SentencePiece's tokenizer.model.
//
// The file is one protocol buffer message (syntax/protobuf.hpp), ModelProto. Poise reads these fields:
//
//   ModelProto     1 pieces (repeated)   2 trainer_spec   3 normalizer_spec   5 denormalizer_spec
//   SentencePiece  1 piece (text)   2 score (float)   3 type (1 normal, 2 unknown, 3 control, 4 user_defined, 5 unused,
//                  6 byte)
//   TrainerSpec    3 model_type (1 unigram, 2 bpe)   24 treat_whitespace_as_suffix   35 byte_fallback   45 unk_piece
//                  46 bos_piece   47 eos_piece   48 pad_piece   (only written: 4 vocab_size, 40 to 43 the ids of these)
//   NormalizerSpec 1 name   2 precompiled_charsmap   3 add_dummy_prefix   4 remove_extra_whitespaces
//                  5 escape_whitespaces
//
// Poise skips other fields. The id of a token is the position of its piece.
#pragma once

#include <string>

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

// Returns the vocabulary in the file. bos_id, eos_id and pad_id are those of the control pieces that TrainerSpec names,
// or -1; these pieces get the types bos, eos and pad. Vocabulary::normalizer is "identity" if the file has no charsmap,
// and otherwise the name that the file gives to it, or "precompiled".
//
// Throws invalid_file, naming the field and its offset, where SentencePiece rejects the file, too (for example without
// an unknown piece, with an empty or repeated piece, or with byte_fallback but not all 256 byte pieces); unsupported
// for word and character models.
Vocabulary read_sentencepiece(const Source& source);

// Returns a tokenizer.model with the vocabulary, its normalizer and denormalizer. Does not check that SentencePiece
// accepts the file; read_sentencepiece() does. Throws what read_normalizer_rules() throws. Requires: the vocabulary's
// kind is one of SentencePiece's.
std::string format_sentencepiece(const Vocabulary& vocabulary);

}  // namespace poise
