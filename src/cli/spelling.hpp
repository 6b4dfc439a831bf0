// Suggestions for misspelled commands and options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace poise::cli {

// The name that was probably meant: differs by at most one letter in three, apart from case and leading dashes, or
// begins with at least three given letters. Null if none is that near. Valid as long as `names`.
const std::string* find_nearest(const std::vector<std::string>& names, std::string_view given);

// Throws bad_argument with a suggestion for an unknown command, or an unknown option in its place. CLI11 only reports
// that a command is missing.
void require_known_command(const CLI::App& app, int argc, char** argv);
void require_known_command(const CLI::App& app, std::string_view given);

// Throws bad_argument with a suggestion for an unknown option of the chosen command. CLI11 lists it, and the value
// after it, as unexpected arguments.
void require_known_options(const CLI::App& app);

}  // namespace poise::cli
