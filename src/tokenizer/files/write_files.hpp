// A vocabulary as the files of a Hugging Face directory: the way back from files.hpp.
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

// tokenizer.json, for vocabularies of SentencePiece tokenizer.model as well, tokenizer_config.json, and the other files
// that the vocabulary keeps. What a vocabulary cannot be written as is told in the losses.
TokenizerFiles tokenizer_files(const Vocabulary& vocabulary);

}  // namespace poise
