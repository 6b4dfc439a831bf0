// Folding means that Poise makes one tensor of the parts that quantizing programs store for a matrix
// (schemes/scheme.hpp).
//
// open() folds, unless ReadOptions::raw is set. A scheme is reversible if it can also unfold: then a conversion makes
// the parts again for formats that cannot hold the folded tensor (convert_convention() of ops/transform/transform.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include <poise/format.hpp>
#include <poise/model.hpp>

namespace poise {

// Folds the parts of reversible schemes in a file of any format. Throws the errors of merge_quantized_parts(), with
// `path`. Returns the model unchanged if options.raw is set.
Model fold_file(Model model, const std::filesystem::path& path, const ReadOptions& options);

// Folds the parts of any scheme in a directory. Leaves out two kinds of tensors that the model's family lacks: scales
// that do not concern weights, and biases of quantized matrices that are all zeros. `quantization_file` names the file
// that quantization_config is from; empty: config.json. Throws the errors of fold_matrices(), with `path`. Returns the
// model unchanged if options.raw is set.
Model fold_directory(Model model, const std::filesystem::path& path, std::string_view quantization_file,
                     const ReadOptions& options);

// Folds the parts that open() has left: those of reversible schemes, if the model was opened with ReadOptions::raw or
// made by a program, and the scaled numbers of ComfyUI's files. Call it if the numbers are needed, or if the output's
// format holds no parts. Returns std::nullopt if there are no parts. Throws the errors of merge_quantized_parts().
std::optional<Model> fold_remaining_parts(const Model& model);

}  // namespace poise
