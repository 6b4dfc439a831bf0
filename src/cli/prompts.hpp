// poise run --prompts: many prompts from a file, several at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include <poise/batch.hpp>

#include "cli/conversations.hpp"

namespace poise::cli {

struct PromptsOptions {
  std::string file;    // "-": standard input; empty: no prompts
  std::string output;  // empty: standard output
  std::size_t parallel = 8;
};

// --prompts, -o, --parallel. Returns the first. Requires: the options outlive the command.
CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options);

struct PromptsSummary {
  std::size_t texts = 0;   // that were generated
  std::size_t kept = 0;    // that the output had
  std::size_t tokens = 0;  // that were generated
};

// Reads a JSON object from each line and writes one for each, in the same order. Lines that the output has are kept.
// Throws invalid_file, with the line, for what is not such an object, and for an output that is of other prompts.
PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate);

}  // namespace poise::cli
