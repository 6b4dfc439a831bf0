// A vocabulary for a model whose embedding has fewer rows than it has tokens.
#pragma once

#include <cstddef>

#include <poise/model.hpp>

namespace poise {

// The tokens with ids below `rows`, and what is left of everything that names others: merges, added tokens, special ids
// and the tokens around texts. An encoder of it makes no id from `rows` on. The same vocabulary where it has no more
// tokens. Throws what special_around() throws.
Vocabulary first_tokens(Vocabulary vocabulary, std::size_t rows);

}  // namespace poise
