// A model's words without its tensors: what a changed model begins with.
#pragma once

#include <poise/model.hpp>

namespace poise {

// All of a model but its tensors.
Model without_tensors(const Model& model);

}  // namespace poise
