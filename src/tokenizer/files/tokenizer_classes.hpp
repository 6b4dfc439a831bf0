// How transformers' tokenizers of vocab.json and merges.txt cut texts, which neither file describes: a row for each
// "tokenizer_class" of tokenizer_config.json.
#pragma once

#include <string_view>

namespace poise {

struct TokenizerClass {
  std::string_view name;        // without "Fast"; "": no class given
  std::string_view normalizer;  // its type; "": none
  std::string_view pre;         // cuts words: the row of gguf_pre_tokenizers() with only that expression; "": GPT-2's
  std::string_view bos;         // if no file names one; "": none
};

// Null for a class without a row.
const TokenizerClass* find_tokenizer_class(std::string_view name);

}  // namespace poise
