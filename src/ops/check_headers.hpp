// What verify() finds in a model without reading its tensors.
#pragma once

#include <filesystem>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Do configuration, vocabulary and shapes agree, and can the model's family plan its computation? A configuration that
// describes no model of the family is an error; one that Poise does not follow is a warning. `path` is the findings'.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path);

}  // namespace poise
