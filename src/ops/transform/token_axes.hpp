// Finds the tensors of a model that have a row for each token, and the keys that count tokens.
//
// These are the tensors whose shape in the family's table (Llama's table for an unknown family) has the vocabulary's
// size. If the model has none of them, these are the tensors outside the layers whose first dimension is the
// configuration's vocab_size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Describes a tensor with a row, or a column, for each token.
struct TokenAxis {
  std::string_view tensor;
  std::size_t axis;
};

// `option` is the name of the option in the errors of the functions below.

// Returns the tensors that have an axis of tokens. Throws bad_argument if there are none. The result refers to the
// model.
std::vector<TokenAxis> find_token_axes(const Model& model, std::string_view option);

// Returns the length of these axes. Throws bad_argument if they are not equally long. Requires: `axes` is not empty.
std::uint64_t count_token_rows(const Model& model, const std::vector<TokenAxis>& axes, std::string_view option);

// Sets Model::vocabulary if the model has none, but its attributes describe one in GGUF's terms; then removes these
// attributes. Throws bad_argument if Poise cannot read the vocabulary.
void move_described_vocabulary(Model& model, std::string_view option);

// Removes the tokenizer's files from Origin::other_files, because they describe the vocabulary before it was cut.
void drop_tokenizer_files(Model& model);

// Sets the keys that count tokens, in the configuration and in GGUF's attributes, where the model has them.
void set_vocabulary_size(Model& model, std::uint64_t size);

}  // namespace poise
