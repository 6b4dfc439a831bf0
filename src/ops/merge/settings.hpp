// Settings of a recipe, resolved for each tensor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <poise/merge.hpp>

#include "ops/merge/method.hpp"

namespace poise {

// Throws bad_argument: "FILE: PROBLEM", without a file if the recipe was not read from one.
[[noreturn]] void refuse_recipe(const MergeRecipe& recipe, const std::string& problem);

// Throws bad_argument for settings that the method does not have, numbers outside their ranges, empty gradients, and
// slices with other numbers of models than the method merges.
void check_recipe(const MergeRecipe& recipe, const MergeMethod& method);

// Returns the sources of a slice that count as inputs: those that are not the base, unless the method merges it, too.
std::vector<const MergeSource*> list_inputs(const MergeRecipe& recipe, const MergeSlice& slice,
                                            const MergeMethod& method);

// Returns the values for a tensor. `position`: of its layer in the slice, from 0 to 1. Requires: check_recipe().
ParameterValues resolve_settings(const MergeRecipe& recipe, const MergeMethod& method, const MergeSlice& slice,
                                 std::string_view tensor, double position);

}  // namespace poise
