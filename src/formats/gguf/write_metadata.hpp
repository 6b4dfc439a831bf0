// A model's card, configuration, vocabulary and attributes as GGUF's metadata.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/architectures.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

// `hyperparameters`: those of the architecture. `file_type`: what llama.cpp calls the types of most tensors.
KeyValues metadata_of(const Model& model, const Architecture* architecture, const Hyperparameters& hyperparameters, std::uint32_t file_type);

// What metadata_of() leaves out, one sentence each.
std::vector<std::string> metadata_losses(const Model& model, const Architecture* architecture, const Hyperparameters& hyperparameters);

}  // namespace poise::gguf
