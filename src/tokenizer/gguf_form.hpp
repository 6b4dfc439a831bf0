// A vocabulary as GGUF says it: the way back from gguf_vocabulary.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/gguf_vocabulary.hpp"

namespace poise {

struct GgufForm {
  std::optional<GgufTokenizer> tokenizer;  // nothing: GGUF has no algorithm that does as the vocabulary
  std::vector<std::string> losses;         // one sentence each
};

// SentencePiece's BPE becomes "llama"; so does BPE with bytes as <0x00> of tokenizer.json, with scores that rank tokens as its merges do. Byte-level BPE
// becomes "gpt2", with the name of a pre-tokenizer that cuts as it does. `general_name`: see GgufTokenizer.
GgufForm gguf_form(const Vocabulary& vocabulary, const std::string& general_name = {});

}  // namespace poise
