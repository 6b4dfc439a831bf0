// Measures an importance matrix and writes it in one call, for the C interface and Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <poise/imatrix.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>

namespace poise {

struct ImatrixFileOptions {
  ImatrixOptions measure = {};
  std::vector<std::filesystem::path> add = {};  // importance matrices whose sums are added
  bool overwrite = false;
  Progress progress = {};
};

// Writes the sums of a text and of the files in `options.add`, and returns them. `model` nullptr: only adds the files.
// Throws what measure_imatrix(), read_imatrix(), add_imatrix() and save_imatrix() throw; bad_argument if there is
// neither a model nor a file; and, before any work, if the output is an input, or exists and `overwrite` is false.
Imatrix make_imatrix_file(const Model* model, std::string_view text, const std::filesystem::path& output,
                          const ImatrixFileOptions& options);

// Returns the sums of the files; std::nullopt if there are none. Throws what read_imatrix() and add_imatrix() throw,
// with the path of the file.
std::optional<Imatrix> add_imatrix_files(const std::vector<std::filesystem::path>& paths);

}  // namespace poise
