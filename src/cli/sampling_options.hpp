// Options of commands that generate text: how tokens are chosen, and where the text ends.
#pragma once

#include <CLI/CLI.hpp>

#include <poise/session.hpp>

namespace poise::cli {

// Requires: the options outlive the command.
void add_generate_options(CLI::App& command, GenerateOptions& options);
// --threads, --exact
void add_session_options(CLI::App& command, SessionOptions& options);

// Refuses what makes no sense before anything takes time.
void check_generate_options(const GenerateOptions& options);

}  // namespace poise::cli
