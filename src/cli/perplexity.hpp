// run --perplexity: how well a model predicts texts.
#pragma once

#include <string>

#include <poise/session.hpp>

#include "cli/progress.hpp"

namespace poise::cli {

// Prints {"texts", "tokens", "perplexity"} for the texts in a file, separated by empty lines. `path`: the model's, for
// messages.
void print_perplexity(Session& session, const std::string& file, const std::string& path,
                      const ProgressOptions& progress);

}  // namespace poise::cli
