// Conversion: what convert() and plan() have in common. A conversion is prepared from headers alone; then it is described, or carried out.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <poise/convert.hpp>

#include "formats/format.hpp"
#include "ops/transform.hpp"

namespace poise {

struct Plan::Work {
  std::optional<Model> opened;  // the input, where the conversion opened it
  const Model* input = nullptr;
  const Format* format = nullptr;
  ConvertOptions options;
  std::vector<std::filesystem::path> files;  // that the output must not be
  std::string replaces;                      // what the output will replace, where it is known; see SavedOutput
  Transformed transformed;
  bool is_written = false;
};

// Throws what plan() throws.
std::shared_ptr<Plan::Work> prepare(const Model& model, std::string_view format, const ConvertOptions& options);
std::shared_ptr<Plan::Work> prepare(const std::filesystem::path& input, const std::filesystem::path& output, const ConvertOptions& options);

}  // namespace poise
