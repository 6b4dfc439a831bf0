// poise run --prompts: many prompts from a file, several at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/batch.hpp>

#include "cli/conversations.hpp"

namespace poise::cli {

struct PromptsOptions {
  std::string file;    // "-": standard input; empty: no prompts
  std::string output;  // empty or "-": standard output
  bool force = false;  // replaces an output that exists
  std::size_t parallel = 8;
  std::vector<std::filesystem::path> inputs;  // other files that the command reads: never the output
};

// Where the answers are until all of them are there.
std::string partial_name(const std::string& output);

// --prompts, -o, --force, --parallel. Returns the first. Requires: the options outlive the command.
CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options);

struct PromptsSummary {
  std::size_t texts = 0;   // that were generated
  std::size_t kept = 0;    // that an interrupted run had written
  std::size_t tokens = 0;  // that were generated
};

// Reads a JSON object from each line and writes one for each, in the same order, or goes on where the same command was
// interrupted. Throws invalid_file, with the line, for what is not such an object; bad_argument for an output that is
// an input, that exists, or that another command began.
PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate);

}  // namespace poise::cli
