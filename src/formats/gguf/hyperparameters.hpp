// Hyperparameters: keys of config.json as GGUF's entries and tensors say them, both ways.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/architectures.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/entries.hpp"
#include "formats/gguf/rope_factors.hpp"

namespace poise::gguf {

// The architecture of a file whose general.architecture is `name`; null: not known.
const Architecture* architecture_in(const Entries& entries, std::string_view name);

Heads heads_in(const Entries& entries, const Architecture& architecture);

// Takes the entries that are keys of config.json. `model` has the file's tensors, by their canonical names, and
// `factors` those that are no tensors.
Attributes config_in(Entries& entries, const Architecture& architecture, const Model& model,
                     const RopeFactors& factors);

// Why config_in() leaves out hyperparameters that a configuration needs, in a sentence that names the file's key.
// Nothing: it leaves out none. Requires: config_in() has not taken the entries.
std::optional<std::string> unreadable_hyperparameter(const Entries& entries, const Architecture& architecture);

// The way back: what a model's configuration is in GGUF.
struct Hyperparameters {
  std::vector<Attributes::Entry> entries;
  RopeFactors factors;
  Heads heads;
  // What llama.cpp computes otherwise than the configuration says, one sentence each.
  std::vector<std::string> differences;
};
Hyperparameters hyperparameters_of(const Model& model, const Architecture& architecture);

}  // namespace poise::gguf
