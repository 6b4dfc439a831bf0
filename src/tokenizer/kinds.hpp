// Declares the table of kinds of vocabularies, and functions that find its rows.
#pragma once

#include <memory>
#include <string_view>

#include <poise/model.hpp>

#include "tokenizer/pipeline/models.hpp"

namespace poise {

struct VocabularyKindRow {
  VocabularyKind kind;
  std::string_view name;  // the name in files and reports
  // Throws invalid_file for an inconsistent vocabulary, and unsupported for one that Poise cannot use (an unknown type
  // of step, a text that is too long). Requires: the vocabulary outlives the scheme; its special ids are in range.
  std::unique_ptr<const TokenScheme> (*make)(const Vocabulary& vocabulary);
};

// Throws internal for a kind without a row.
const VocabularyKindRow& get_kind_row(VocabularyKind kind);

// Returns the row of a name; null if there is none.
const VocabularyKindRow* find_kind_row(std::string_view name);

inline std::string_view get_kind_name(VocabularyKind kind) { return get_kind_row(kind).name; }

std::unique_ptr<const TokenScheme> make_sentencepiece_bpe(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_sentencepiece_unigram(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_byte_pair(const Vocabulary& vocabulary);
std::unique_ptr<const TokenScheme> make_pipeline(const Vocabulary& vocabulary);

}  // namespace poise
