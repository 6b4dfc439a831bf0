// Merges adapters into a model, for conversions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <poise/lora.hpp>

#include "formats/adapter.hpp"

namespace poise {

// Returns the adapter in a file, with the names of `base`. Errors of the file stay in Adapter::faults, for the
// caller to throw. Throws invalid_file for a file that is not an adapter, and unsupported for settings that Poise
// does not support, with a list of them.
Adapter require_adapter(const Model& file, const Model& base);

// Maps names of changed tensors to the types in which the model stores these, as describe_stored_type() spells them:
// "bf16", "q4_k".
using MergedTypes = std::map<std::string, std::string, std::less<>>;

// Throws unsupported if files of this format cannot hold an adapter's description, which all readers of adapters need.
void require_adapter_format(const Format& format);

struct MergedModel {
  // The merged model. Changed matrices are float32. Those that adapters change are float64 if they were dense float64.
  std::shared_ptr<const Model> model;
  MergedTypes types;  // the types of changed matrices, and of quantized ones that an adapter stores whole
};

// Returns the model with tied embeddings resolved and adapters merged; the same one if neither changes it. Throws what
// with_lora() throws.
MergedModel merge_adapters(std::shared_ptr<const Model> model, std::span<const LoraAdapter> adapters);

}  // namespace poise
