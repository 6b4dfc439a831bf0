// run --perplexity: how well a model predicts texts, and how far its predictions are from another model's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <poise/session.hpp>
#include <poise/weights.hpp>

#include "cli/progress.hpp"

namespace poise::cli {

struct PerplexityOptions {
  std::string file;                   // of texts, separated by empty lines; empty: no perplexity
  std::string against;                // the base's path; empty: none
  std::optional<std::size_t> window;  // tokens at a time; nothing: each text by itself
  std::optional<std::size_t> stride;
};

// --perplexity, --against, --window, --stride. Returns the first. Requires: the options outlive the command.
CLI::Option* add_perplexity_options(CLI::App& command, PerplexityOptions& options);

// Prints the perplexity as a table, or with `json` as an object. Returns the number of tokens that were predicted.
std::size_t print_perplexity(const PerplexityOptions& options, std::shared_ptr<const Weights> model,
                             std::shared_ptr<const Weights> base, const SessionOptions& session, bool json,
                             const ProgressOptions& progress);

}  // namespace poise::cli
