// Reading both versions of ALT.
#pragma once

#include "formats/format.hpp"

namespace poise::alt {

Model read_v2(const Input& input, const ReadOptions& options);
Model read_v1(const Input& input, const ReadOptions& options);

// The files do not store config.vocab_size: it is the embedding's rows or, without an embedding, the vocabulary's
// tokens.
void set_vocab_size(Model& model);

}  // namespace poise::alt
