#include "cli/model_options.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "cli/text.hpp"
#include "formats/open_with_directory.hpp"

namespace poise::cli {

Model open_to_compute(const std::string& path, const ReadOptions& options, bool quiet) {
  Model model = open(path, options);
  if (model.config) return model;
  std::optional<Model> whole = open_with_directory(path, model.origin.format, options);
  if (!whole) return model;
  if (!quiet)
    complain(fmt::format("note: {} states no configuration: using config.json and the tokenizer next to it",
                         printable(std::filesystem::path(path).filename().string())));
  return *std::move(whole);
}

Model ModelOptions::open_model(bool quiet) const {
  Model model = open_to_compute(path, read, quiet);
  if (!lora.empty()) model = with_lora(model, lora);
  if (auto vocabulary = tokenizer.read()) model.vocabulary = std::move(vocabulary);
  return model;
}

}  // namespace poise::cli
