// Whether the scores of two models are of the same tokens.
#pragma once

#include <string>

#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

// Throws bad_argument, naming the difference, for other numbers of scores, and for ids that are different texts in
// both. One of two vocabularies may be longer, by names for rows that pad the embedding, or absent.
void require_same_vocabulary(const Weights& model, const Weights& base);

// "token" (id 17)
std::string shown_token(const Weights& weights, TokenId token);

}  // namespace poise
