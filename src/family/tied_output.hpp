// Corrects models whose embedding is the output matrix, too (tie_word_embeddings): files store the two in several ways.
#pragma once

#include <optional>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Corrects a model whose configuration ties the output to the embedding, but which stores an output matrix. Returns
// std::nullopt for other models.
//
//   the output matrix alone      it becomes the embedding
//   both, with equal numbers     the output matrix is left out, with a warning if the file stores it a second time
//   both, with other numbers     both stay, and tie_word_embeddings becomes false, with a warning, as in transformers 5
//
// Reads the numbers of both up to the first difference.
std::optional<Model> resolve_tied_output(const Model& model);

// Sets tie_word_embeddings to false in config, and in config_json and its nested object unless config_json is empty.
// Requires: model.config.
void untie_output(ModelHeader& model);

// Returns the model with the embedding as its output matrix, too, for readers that require one. Returns std::nullopt if
// the output is not tied, if it is stored, or if there is no embedding.
std::optional<ConvertedWeights> store_tied_output(const Model& model);

// Adds the tensors that the metadata of a safetensors file names as aliases of stored tensors, and removes these
// entries of the metadata. Returns std::nullopt if there are none. save_model() of safetensors.torch stores tensors
// that share memory once, under one name, and adds {OTHER NAME: THAT NAME} to __metadata__ for each other name.
std::optional<Model> resolve_aliases(const Model& model);

}  // namespace poise
