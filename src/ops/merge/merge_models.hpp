// merge_models: opens the models of a recipe, and makes one whose tensors are computed from theirs.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include <poise/merge.hpp>

#include "ops/lora.hpp"

namespace poise {

struct MergedModels {
  MergedModel merged;  // the types are those of the base's tensors, else of the first source's
  std::vector<std::shared_ptr<const Model>> inputs;
  std::unordered_set<const Tensor*> used;  // of the inputs
};

// Reads headers alone, and with tied embeddings what resolve_tied_output() reads. Throws what merge() throws.
MergedModels merge_models(const MergeRecipe& recipe, const ReadOptions& options);

}  // namespace poise
