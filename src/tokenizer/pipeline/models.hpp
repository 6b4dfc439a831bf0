// Models: turn the pieces of a text into token ids.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

// A model's encoder, with its own memory.
class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  // Appends the piece's ids. Requires: well-formed UTF-8 that is not empty.
  virtual void encode(std::string_view piece, std::vector<TokenId>& tokens) = 0;
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Requires: this outlives it.
  virtual std::unique_ptr<PieceEncoder> start() const = 0;
};

// The input of makers.
struct ModelContext {
  const Vocabulary& vocabulary;
  const TokenIndex& ids;  // of the tokens that the model knows
};

// All tokens of a pipeline except "added_only", which its model was made without. Throws invalid_file. Requires: the
// vocabulary outlives it.
TokenIndex tokens_of_model(const Vocabulary& vocabulary);

// Selects a row of models.cpp by the field's "type". Throws invalid_file and unsupported. Requires: the context's parts
// outlive it.
std::unique_ptr<const PieceModel> make_piece_model(const Fields& fields, const ModelContext& context);

std::unique_ptr<const PieceModel> make_bpe(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_unigram(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_word_piece(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_word_level(const Fields& fields, const ModelContext& context);

// The id of the token that a field names. Throws invalid_file if the vocabulary lacks it.
TokenId token_named(const Fields& fields, std::string_view key, std::string_view text, const ModelContext& context);

}  // namespace poise
