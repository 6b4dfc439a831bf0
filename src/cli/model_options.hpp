// The model that a command computes with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <poise/format.hpp>
#include <poise/lora.hpp>
#include <poise/weights.hpp>

#include "cli/options.hpp"

namespace poise::cli {

struct ModelOptions {
  std::string path;
  ReadOptions read;
  std::vector<LoraAdapter> lora;
  TokenizerFiles tokenizer;

  // Opens the model and merges the adapters. Throws what open() and with_lora() throw.
  Model open_model() const;
  // Loads its weights, too. Throws what load_weights() throws.
  std::shared_ptr<const Weights> load() const;
};

}  // namespace poise::cli
