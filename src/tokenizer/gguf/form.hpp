// A vocabulary in GGUF's form: the inverse of gguf/vocabulary.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/gguf/vocabulary.hpp"

namespace poise {

struct GgufForm {
  std::optional<GgufTokenizer> tokenizer;  // nothing: GGUF has no equivalent algorithm
  std::vector<std::string> losses;         // one sentence each
};

// SentencePiece's BPE becomes "llama"; so does BPE of tokenizer.json with bytes as <0x00>, with scores that rank tokens
// as its merges do. Byte-level BPE becomes "gpt2", with the name of an equivalent pre-tokenizer. `general_name`: see
// GgufTokenizer.
GgufForm gguf_form(const Vocabulary& vocabulary, const std::string& general_name = {});

// Converts a vocabulary of tokenizer.json with the form "llama" to SentencePiece's BPE, for formats of tokens and
// scores: without added tokens and special tokens around a text. Nothing for all others.
std::optional<Vocabulary> sentencepiece_form(const Vocabulary& vocabulary);

}  // namespace poise
