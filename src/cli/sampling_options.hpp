// Options of commands that generate text: sampling, and where the text ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/format.hpp>
#include <poise/session.hpp>

namespace poise::cli {

// Returns the options of the command that set them. Requires: the options outlive the command.
std::vector<const CLI::Option*> add_generate_options(CLI::App& command, GenerateOptions& options);
// Samples as the model's files ask where no option was given, and says so unless `quiet`. `given`: what
// add_generate_options() returned.
void use_sampling_defaults(const Model& model, const std::vector<const CLI::Option*>& given, SamplingOptions& sampling,
                           bool quiet);
// --threads, --context, --exact, --cache
void add_session_options(CLI::App& command, SessionOptions& options);

// --draft
CLI::Option* add_draft_option(CLI::App& command, std::string& draft);
// "lookup", or a model, which this opens; nothing if empty.
std::optional<DraftOptions> open_draft(const std::string& draft, const ReadOptions& options, bool quiet);

// Rejects invalid options before any work.
void check_generate_options(const GenerateOptions& options);

}  // namespace poise::cli
