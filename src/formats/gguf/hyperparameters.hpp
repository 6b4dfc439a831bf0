// Hyperparameters: keys of config.json as GGUF's entries and tensors, both ways.
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

// The architecture of a file whose general.architecture is `name`, or null.
const Architecture* architecture_in(const Entries& entries, std::string_view name);

Heads heads_in(const Entries& entries, const Architecture& architecture);

// Takes the entries that are keys of config.json. `model` has the file's tensors under canonical names; `factors` are
// those that become configuration.
Attributes config_in(Entries& entries, const Architecture& architecture, const Model& model,
                     const RopeFactors& factors);

// Why config_in() leaves out required hyperparameters: a sentence that names the file's key. Nothing if it leaves out
// none. Requires: config_in() has not taken the entries.
std::optional<std::string> unreadable_hyperparameter(const Entries& entries, const Architecture& architecture);

// The inverse: a model's configuration in GGUF.
struct Hyperparameters {
  std::vector<Attributes::Entry> entries;
  RopeFactors factors;
  Heads heads;
  // Where llama.cpp's computation differs from the configuration, one sentence each.
  std::vector<std::string> differences;
};
Hyperparameters hyperparameters_of(const Model& model, const Architecture& architecture);

}  // namespace poise::gguf
