// Conversion: what convert() and plan() share. A conversion is prepared from headers alone, then described or carried
// out.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/convert.hpp>

#include "formats/format.hpp"
#include "ops/lora.hpp"
#include "ops/measured_losses.hpp"
#include "ops/transform/transform.hpp"

namespace poise {

struct Plan::Work {
  std::optional<Model> opened;        // the input, if the conversion opened it
  const Model* read = nullptr;        // the input before adapters
  std::optional<Model> resolved;      // its tied embeddings, if they need that
  std::optional<MergedModel> merged;  // with the adapters, if there are any
  const Model* input = nullptr;       // one of these
  const Format* format = nullptr;
  ConvertOptions options;
  std::vector<std::filesystem::path> files;  // the output must not replace these
  std::string replaces;                      // what the output will replace, if known; see SavedOutput
  Transformed transformed;
  std::optional<MeasuredLosses> losses;    // of its casts and codes
  std::unique_ptr<PreparedFile> prepared;  // of its model; null until made
  bool is_written = false;

  // Throws what prepare_file() throws.
  const PreparedFile& file() {
    if (!prepared) prepared = prepare_file(transformed.model, *format, options.write);
    return *prepared;
  }
  // What the output file cannot hold of the input, one sentence each.
  std::vector<std::string> reported_losses() {
    std::vector<std::string> all = transformed.reformed ? transformed.reformed->losses : std::vector<std::string>();
    std::ranges::move(file().losses(), std::back_inserter(all));
    return all;
  }
};

// Carries out a plan, as write() of <poise/convert.hpp> does, into an output of any kind.
ConvertReport write(const Plan& plan, SavedOutput& output);

// Throws what plan() throws.
std::shared_ptr<Plan::Work> prepare(const Model& model, std::string_view format, const ConvertOptions& options);
std::shared_ptr<Plan::Work> prepare(const std::filesystem::path& input, const std::filesystem::path& output,
                                    const ConvertOptions& options);

}  // namespace poise
