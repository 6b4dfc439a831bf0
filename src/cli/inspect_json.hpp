// What `poise inspect --json` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "formats/format.hpp"

namespace poise::cli {

// Prints the model opened at `path`, and the metadata keys of its file if given. Throws what finding the scale of an
// affine tensor throws.
void print_inspection_json(const Model& model, const std::string& path,
                           const std::optional<std::vector<MetadataKey>>& keys);

// The sizes of a vocabulary, without its tokens.
Attributes vocabulary_json(const Vocabulary& vocabulary);

// "... (at 0x40)"
std::string describe(const Finding& warning);

}  // namespace poise::cli
