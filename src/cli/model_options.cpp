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

std::vector<std::filesystem::path> ModelOptions::files() const {
  std::vector<std::filesystem::path> all = {path};
  for (const LoraAdapter& adapter : lora) all.push_back(adapter.path);
  for (const std::string& file : {tokenizer.vocab, tokenizer.merges}) {
    if (!file.empty()) all.emplace_back(file);
  }
  // Files of a directory.
  for (std::size_t i = 0, given = all.size(); i < given; ++i) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(all[i], ignored)) all.push_back(entry.path());
  }
  return all;
}

}  // namespace poise::cli
