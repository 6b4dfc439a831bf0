// Reduces a model to the part that llama.cpp reads: the text model, with the names of its family's table.
#pragma once

#include <optional>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Implements Family::convert_weights() for families whose weights are stored in one way. For llama.cpp, keeps only the
// text model of a configuration with text_config, and changes the prefixes of names to those of the family's table.
// Returns std::nullopt for other readers, or if all stays as it is.
std::optional<ConvertedWeights> keep_text_model(const Model& model, WeightReader reader, bool numbers);

}  // namespace poise
