// Joins the vocabularies of the models of a merge (docs/merging.md has the rules).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

struct NamedVocabulary {
  std::string model;  // the model's name in messages
  Vocabulary vocabulary;
};

struct JoinedVocabulary {
  Vocabulary vocabulary;
  // ids[m][t] is the id that model m has for token t of the result; -1: the model lacks the token.
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::string> notes;  // one sentence each: where the result differs from a model
};

// Makes the vocabulary of a merge: that of the model `own`, and, if `adds_tokens`, all tokens of the other models that
// it lacks. Tokens are the same if their texts are. The tokens of `own` keep their ids. Throws unsupported for
// tokenizers of different kinds, and where tokens cannot follow those of `own`. Requires: own < models.size().
JoinedVocabulary join_vocabularies(std::span<const NamedVocabulary> models, std::size_t own, bool adds_tokens);

}  // namespace poise
