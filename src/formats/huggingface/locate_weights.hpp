// The files with the tensors of a Hugging Face directory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "formats/format.hpp"

namespace poise::huggingface {

// Where a directory has its tensors.
struct LocatedWeights {
  const Format* format = nullptr;
  std::string name;  // of the only file, or of the index
  bool is_index = false;

  const WeightFiles& files() const { return *format->weight_files; }
};

// By the names of all formats (Format::weight_files), the usual ones of each first.
std::optional<LocatedWeights> find_weights(const std::filesystem::path& directory);

// The file with the matrices of an adapter (adapter.hpp); nothing if its configuration or its matrices are missing.
std::optional<std::string> find_adapter(const std::filesystem::path& directory);

// Throws invalid_file, with what is missing and what is there instead.
LocatedWeights require_weights(const std::filesystem::path& directory);

}  // namespace poise::huggingface
