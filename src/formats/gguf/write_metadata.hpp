// Converts a model's card, configuration, vocabulary and attributes to GGUF's metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/architectures.hpp"
#include "formats/gguf/general_keys.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

struct WrittenMetadata {
  KeyValues entries;
  std::vector<std::string> losses;  // what they leave out, one sentence each
};

// `hyperparameters`: those of the architecture. `file_type`: llama.cpp's number for the types of most tensors, if it
// has one. `tensors`: all of the file.
WrittenMetadata metadata_of(const Model& model, const Architecture* architecture,
                            const Hyperparameters& hyperparameters, std::optional<std::uint32_t> file_type,
                            const std::vector<CountedTensor>& tensors);

}  // namespace poise::gguf
