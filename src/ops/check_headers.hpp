// The findings of verify() about what a model's headers say together.
#pragma once

#include <filesystem>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree, and that there is a tokenizer for the vocabulary. With `runs`
// also that a model of a known family can be run: what load_weights() refuses as invalid is an error; what Poise does
// not implement is a warning. `path` is the findings'.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs = true);

}  // namespace poise
