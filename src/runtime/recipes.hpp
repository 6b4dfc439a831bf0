// Recipes: which transformer computes the models of a family.
#pragma once

#include <memory>

#include "family/family.hpp"
#include "runtime/transformer.hpp"

namespace poise {

// Makes a transformer of a model. Requires: configuration and tensors have been checked.
using Recipe = std::unique_ptr<const Transformer> (*)(const Model& model);

// Requires: one of families().
Recipe recipe_of(const Family& family);

std::unique_ptr<const Transformer> make_mistral(const Model& model);
std::unique_ptr<const Transformer> make_tiny_llama(const Model& model);

}  // namespace poise
