// Suggestions for misspelled commands and options.
#pragma once

#include <string_view>

#include <CLI/CLI.hpp>

namespace poise::cli {

// Throws bad_argument with a suggestion for an unknown command, or an unknown option in its place. CLI11 only reports
// that a command is missing.
void require_known_command(const CLI::App& app, int argc, char** argv);
void require_known_command(const CLI::App& app, std::string_view given);

// Throws bad_argument with a suggestion for an unknown option of the chosen command. CLI11 lists it, and the value
// after it, as unexpected arguments.
void require_known_options(const CLI::App& app);

}  // namespace poise::cli
