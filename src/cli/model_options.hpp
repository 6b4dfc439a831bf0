// The model that a command computes with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <poise/format.hpp>
#include <poise/lora.hpp>
#include <poise/weights.hpp>

#include "cli/options.hpp"

namespace poise::cli {

// Opens a model that computes: weights that state no configuration come with the config.json and the tokenizer next to
// them, which a note reports unless `quiet`. Throws what open() throws.
Model open_to_compute(const std::string& path, const ReadOptions& options, bool quiet);

struct ModelOptions {
  std::string path;
  ReadOptions read;
  std::vector<LoraAdapter> lora;
  TokenizerFiles tokenizer;

  // Opens the model (open_to_compute()) and merges the adapters. Throws what open() and with_lora() throw.
  Model open_model(bool quiet) const;

  // The paths given, and the files of those that are directories.
  std::vector<std::filesystem::path> files() const;
};

}  // namespace poise::cli
