// Measures an importance matrix and writes it, for programs that do both in one call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include <poise/imatrix.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/value.hpp>

namespace poise {

struct ImatrixFileOptions {
  ImatrixOptions measure = {};
  std::vector<std::filesystem::path> add = {};  // importance matrices whose sums are added
  bool overwrite = false;
  Progress progress = {};
};

// Writes the sums of a text and of the files in `options.add`, and returns them. `model` nullptr: only adds the files.
// Throws what measure_imatrix(), read_imatrix(), add_imatrix() and save_imatrix() throw; bad_argument without a model
// and without files, and, before any work, for an output that exists without `overwrite` or is an input.
Imatrix make_imatrix_file(const Model* model, std::string_view text, const std::filesystem::path& output,
                          const ImatrixFileOptions& options);

// Returns an array of maps: "entry", "experts" (an array of their numbers) and "count".
Value::Array list_gaps(const std::vector<ImatrixGap>& gaps);

}  // namespace poise
