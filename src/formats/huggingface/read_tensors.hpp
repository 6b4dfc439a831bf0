// Reads the tensors of a Hugging Face directory: of one file, or of the shards that its index lists.
#pragma once

#include <filesystem>
#include <vector>

#include <poise/model.hpp>

#include "formats/huggingface/directory.hpp"
#include "formats/huggingface/locate_weights.hpp"

namespace poise::huggingface {

// Adds the tensors to the model, without those that its family computes, and the files' metadata as its attributes.
// Returns the weight files. Throws invalid_file for an index that does not fit the shards, not_found for
// missing shards, and what WeightFiles::read throws.
std::vector<std::filesystem::path> read_tensors(Model& model, DirectoryReader& directory,
                                                const LocatedWeights& weights);

}  // namespace poise::huggingface
