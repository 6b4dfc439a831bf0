// The findings of verify() that need no tensor's bytes.
#pragma once

#include <filesystem>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree and that the family can plan the computation. An invalid
// configuration is an error; one that Poise does not implement is a warning. `path` is the findings'.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path);

}  // namespace poise
