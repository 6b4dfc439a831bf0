// The matrices of a quantized directory: where it describes them, and one tensor of each.
#pragma once

#include <string_view>

#include <poise/model.hpp>

#include "formats/huggingface/directory.hpp"

namespace poise::huggingface {

// Without quantization_config in config.json, sets it from the file next to it that describes the quantization
// (schemes/quantization_files.hpp). Returns the name of that file; empty: config.json counts, or there is none. Warns
// of files that contradict what counts. Throws invalid_file.
std::string_view take_quantization_file(Model& model, DirectoryReader& directory);

// Folds the matrices into one tensor each (schemes/scheme.hpp), and leaves out biases of zeros that the model's family
// does not have. `file`: what take_quantization_file() returned. Throws invalid_file and unsupported, with the path of
// the directory.
Model with_folded_matrices(Model model, const std::filesystem::path& directory, std::string_view file);

}  // namespace poise::huggingface
