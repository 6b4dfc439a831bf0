// Folding means that Poise makes one tensor of the parts that quantizing programs store for a matrix
// (schemes/scheme.hpp).
//
// open() folds, unless `raw` is set. A conversion unfolds again for formats that hold parts (convert_convention() of
// ops/transform/transform.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include <poise/format.hpp>
#include <poise/model.hpp>

namespace poise {

// Folds the parts of reversible schemes in a file of any format. Throws what merge_quantized_parts() throws, with that
// path.
Model fold_file(Model model, const std::filesystem::path& path, const ReadOptions& options);

// Folds the parts of any scheme in a directory. Leaves out scales that do not concern weights, and biases of zeros, if
// the model's family lacks them. `quantization_file` names the file that quantization_config is from; empty:
// config.json. Throws invalid_file and unsupported, with that path.
Model fold_directory(Model model, const std::filesystem::path& path, std::string_view quantization_file,
                     const ReadOptions& options);

// Folds the parts that open() has left: those of a model that was opened `raw` or made by a program, and the scaled
// numbers of ComfyUI's files. Call it if the numbers are needed, or if the output's format holds no parts. Returns
// std::nullopt if there are no parts. Throws what merge_quantized_parts() throws.
std::optional<Model> fold_remaining_parts(const Model& model);

}  // namespace poise
