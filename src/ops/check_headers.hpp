// The findings of verify() that need no tensor's bytes.
#pragma once

#include <filesystem>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree. With `runs` also that a model of a known family can be run:
// an invalid configuration is an error; what Poise does not implement is a warning. `path` is the findings'.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs = true);

}  // namespace poise
