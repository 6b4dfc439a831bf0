// tokenizer.bin of llama2.c, which stands next to the weights:
//
//   i32          bytes of the longest token
//   for each token: f32 score, i32 length, its text with spaces in place of U+2581
//
// It has neither the number of tokens, which the weights have, nor their types, which llama2.c assumes: 0 is <unk>, 1
// <s>, 2 </s>, 3 to 258 are single bytes.
#pragma once

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise::llama2c {

// Throws invalid_file. Requires: tokens <= kMaxTokens.
Vocabulary read_tokenizer(const SourcePtr& source, std::uint64_t tokens);

}  // namespace poise::llama2c
