// A vocabulary as GGUF says it: the way back from gguf/vocabulary.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/gguf/vocabulary.hpp"

namespace poise {

struct GgufForm {
  std::optional<GgufTokenizer> tokenizer;  // nothing: GGUF has no algorithm that does as the vocabulary
  std::vector<std::string> losses;         // one sentence each
};

// SentencePiece's BPE becomes "llama"; so does BPE with bytes as <0x00> of tokenizer.json, with scores that rank tokens
// as its merges do. Byte-level BPE becomes "gpt2", with the name of a pre-tokenizer that cuts as it does.
// `general_name`: see GgufTokenizer.
GgufForm gguf_form(const Vocabulary& vocabulary, const std::string& general_name = {});

// A vocabulary of tokenizer.json that has the form "llama" as one of SentencePiece's BPE, for formats of tokens and
// scores: its added tokens and the special tokens around a text are not in it. Nothing for all others.
std::optional<Vocabulary> sentencepiece_form(const Vocabulary& vocabulary);

}  // namespace poise
