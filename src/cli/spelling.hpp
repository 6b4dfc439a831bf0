// Names of commands and options that are typed wrongly, and what was perhaps meant.
#pragma once

#include <string_view>

#include <CLI/CLI.hpp>

namespace poise::cli {

// CLI11 says of an unknown command, and of an unknown option in its place, only that there is no command. Throws
// bad_argument, with what was perhaps meant.
void require_known_command(const CLI::App& app, int argc, char** argv);
void require_known_command(const CLI::App& app, std::string_view given);

// CLI11 lists an unknown option and the value after it as arguments that it did not expect. Throws bad_argument, with
// what was perhaps meant, where an option is among what the chosen command did not expect.
void require_known_options(const CLI::App& app);

}  // namespace poise::cli
