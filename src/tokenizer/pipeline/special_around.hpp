// The special tokens that a vocabulary puts around a text: those of its post-processor; without one, BOS in front where
// SentencePiece or Tiny Llama cut the text, none elsewhere.
#pragma once

#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

struct SpecialAround {
  std::vector<TokenId> before;
  std::vector<TokenId> after;

  friend bool operator==(const SpecialAround&, const SpecialAround&) = default;
};

// Throws invalid_file and unsupported for a post-processor that is none.
SpecialAround special_around(const Vocabulary& vocabulary);

// What a vocabulary of that kind puts around texts where no post-processor says it.
SpecialAround usual_special_around(const Vocabulary& vocabulary);

// As a post-processor of tokenizer.json says it. Requires: the vocabulary has the tokens.
Attributes as_post_processor(const Vocabulary& vocabulary, const SpecialAround& around);

// Notes whether BOS goes in front of texts and EOS after them, where the vocabulary has the two. Keeps no more than
// what differs from the usual.
void set_special_around(Vocabulary& vocabulary, bool bos, bool eos);

}  // namespace poise
