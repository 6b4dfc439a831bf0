// Finds and sets the special tokens that a vocabulary puts around a text. They are those of its post-processor. Without
// one, SentencePiece and Tiny Llama put BOS in front, and others put none.
#pragma once

#include <cstddef>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "syntax/fields.hpp"

namespace poise {

struct SpecialAround {
  std::vector<TokenId> before;
  std::vector<TokenId> after;

  friend bool operator==(const SpecialAround&, const SpecialAround&) = default;
};

// Returns the tokens that a post-processor of tokenizer.json puts around a text. Throws invalid_file, also for ids
// outside the vocabulary, and unsupported for unknown types.
SpecialAround read_post_processor(const Fields& fields, std::size_t vocabulary_size);

// Returns the tokens around the texts of a vocabulary. Throws what read_post_processor() throws.
SpecialAround find_special_around(const Vocabulary& vocabulary);

// Returns the tokens around texts of a vocabulary without a post-processor, by its kind.
SpecialAround find_usual_special_around(const Vocabulary& vocabulary);

// Returns a post-processor of tokenizer.json that puts these tokens around a text. Requires: the vocabulary has the
// tokens.
Attributes make_post_processor(const Vocabulary& vocabulary, const SpecialAround& around);

// Sets whether BOS goes in front of texts, and EOS after them. Ignores a token that the vocabulary lacks. Stores a
// post-processor only if the tokens differ from find_usual_special_around().
void set_special_around(Vocabulary& vocabulary, bool bos, bool eos);

}  // namespace poise
