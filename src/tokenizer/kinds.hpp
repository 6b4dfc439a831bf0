// The kinds of vocabularies, a row for each.
#pragma once

#include <memory>
#include <string_view>

#include <poise/model.hpp>

#include "tokenizer/pipeline/models.hpp"

namespace poise {

struct TokenKind {
  VocabularyKind kind;
  std::string_view name;  // in files and reports
  // Throws invalid_file for an inconsistent vocabulary. Requires: the vocabulary outlives the scheme; its ids are in
  // range.
  std::unique_ptr<const TokenScheme> (*make)(const Vocabulary& vocabulary);
};

const TokenKind& token_kind(VocabularyKind kind);

// Returns the row of that name.
const TokenKind* find_token_kind(std::string_view name);

inline std::string_view name_kind(VocabularyKind kind) { return token_kind(kind).name; }

std::unique_ptr<const TokenScheme> make_sentencepiece_bpe(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_sentencepiece_unigram(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_byte_pair(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_pipeline(const Vocabulary& vocabulary);

}  // namespace poise
