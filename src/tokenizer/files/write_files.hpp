// Writes a vocabulary as the files of a Hugging Face directory: the inverse of files.hpp.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/tokens/kept_files.hpp"

namespace poise {

struct TokenizerFiles {
  std::vector<TokenizerFile> files;
  std::vector<std::string> losses;  // one sentence each
};

// tokenizer.json, tokenizer.model for SentencePiece vocabularies, tokenizer_config.json, and the other files that the
// vocabulary keeps. The losses report what cannot be written.
TokenizerFiles tokenizer_files(const Vocabulary& vocabulary);

}  // namespace poise
