// Warnings about tensors that Poise does not understand.
#pragma once

#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Adds a warning for elements that were not checked: for each tensor of Layout::other whose name `is_known_layout`
// rejects, and for each part of an unknown type.
void find_unknown(const Model& model, bool (*is_known_layout)(std::string_view), std::vector<Finding>& findings);

}  // namespace poise
