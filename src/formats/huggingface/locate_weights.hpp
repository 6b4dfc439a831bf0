// The files with the tensors of a Hugging Face directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "pack/container.hpp"

namespace poise::huggingface {

// Where a directory has its tensors.
struct LocatedWeights {
  const Format* format = nullptr;
  std::string name;  // of the only file, or of the index
  bool is_index = false;

  const WeightFiles& files() const { return *format->weight_files; }
};

// The files of a directory, or of the folder of an archive that has a model: the first of find_folders(), with a
// warning that names the others. Throws what open_container() throws.
std::unique_ptr<const Container> open_files(const Input& input, IoMode io, std::vector<Finding>* warnings = nullptr);

// The folders of an archive that have config.json and files with tensors, the outermost first; "": the archive itself.
std::vector<std::string> find_folders(const MemberNames& names);

// By the names of all formats (Format::weight_files), the usual ones of each first.
std::optional<LocatedWeights> find_weights(const Container& directory);

// The file with the matrices of an adapter (adapter.hpp); nothing if its configuration or its matrices are missing.
std::optional<std::string> find_adapter(const Container& directory);

// Throws invalid_file, with what is missing and what is there instead.
LocatedWeights require_weights(const Container& directory);

}  // namespace poise::huggingface
