// What `poise inspect --json` prints.
#pragma once

#include <string>

#include <poise/model.hpp>

namespace poise::cli {

// Prints the model that was opened at `path`. Throws what finding the scale of an affine tensor throws.
void print_inspection_json(const Model& model, const std::string& path);

// The sizes of a vocabulary, without its tokens.
Attributes vocabulary_json(const Vocabulary& vocabulary);

// "... (at 0x40)"
std::string describe(const Finding& warning);

}  // namespace poise::cli
