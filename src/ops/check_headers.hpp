// Checks whether the headers of a model agree, for verify().
#pragma once

#include <filesystem>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree, and that there is a tokenizer for the vocabulary. If `runs`,
// checks that a model of a known family can run: returns an error if load_weights() would refuse it as invalid, and a
// warning if Poise does not support it. Findings without a file of their own get `path`.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs = true);

}  // namespace poise
