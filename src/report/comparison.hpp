// The comparison of a model with the one that it was made from.
#pragma once

#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/value.hpp>

#include "report/tensor_data.hpp"

namespace poise {

// Compares all numbers. Returns what differs in metadata, and the counts; adds the differences of tensors and the maps
// of their errors to `columns`. If a tensor cannot be read, returns the other model's title and the problem.
Value compare_with(const Model& original, const Model& model, const PageTensors& tensors, const Progress& progress,
                   TensorColumns& columns);

}  // namespace poise
