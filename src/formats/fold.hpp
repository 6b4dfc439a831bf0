// Folding: where Poise makes one tensor of the parts that quantizing programs store for a matrix (schemes/scheme.hpp).
//
// Opening folds always, unless `raw`; a conversion unfolds again for formats that hold parts (convert_convention() of
// ops/transform/transform.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include <poise/format.hpp>
#include <poise/model.hpp>

namespace poise {

// Returns the model of a file of any format: folds the parts of reversible schemes. Throws invalid_file with that path.
Model fold_file(Model model, const std::filesystem::path& path, const ReadOptions& options);

// Returns the model of a directory, whose parts may be those of any scheme. Leaves out biases of zeros that the model's
// family does not have. `quantization_file`: where its quantization_config is from; empty: config.json. Throws
// invalid_file and unsupported, with that path.
Model fold_directory(Model model, const std::filesystem::path& path, std::string_view quantization_file,
                     const ReadOptions& options);

// Folds for numbers, or for formats without parts: a model that was opened `raw`, or made by a program, and the scaled
// numbers of ComfyUI's files, which opening leaves as they are. Returns std::nullopt if there are no parts. Throws
// invalid_file (without path).
std::optional<Model> fold_for_numbers(const Model& model);

}  // namespace poise
