// Reads both versions of ALT.
#pragma once

#include "formats/format.hpp"

namespace poise::alt {

Model read_v2(const Input& input, const ReadOptions& options);
Model read_v1(const Input& input, const ReadOptions& options);

// Sets config.vocab_size, which the files do not store: the embedding's rows or, without an embedding, the number of
// tokens.
void set_vocab_size(Model& model);

}  // namespace poise::alt
