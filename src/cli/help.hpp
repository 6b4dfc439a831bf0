// Makes help texts that fit the terminal, and messages about wrong usage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace poise::cli {

// Returns the formatter of help. It writes names in a column and descriptions next to them. Unlike CLI11's formatter,
// it shows an argument that is also an option (OUT, -o) only once.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

// Returns how a command is called: "poise diff A B [OPTIONS]".
std::string make_usage_line(const CLI::App& command);

// Returns the help of `poise` itself, even if a subcommand was parsed.
std::string make_overview(const CLI::App& app);

// Returns the name that the user probably meant, or null if no name is similar. A name is similar if at most one letter
// in three differs, ignoring case and leading dashes, or if it begins with `given` and `given` has at least three
// letters. The result points into `names`.
const std::string* find_nearest(const std::vector<std::string>& names, std::string_view given);

// Throws bad_argument, with a suggestion for a command, if the first argument is an unknown command or option. CLI11
// only reports that a command is missing.
void require_known_command(const CLI::App& app, int argc, char** argv);
// Throws bad_argument with a suggestion if `given` is not the name of a command.
void require_known_command(const CLI::App& app, std::string_view given);

// Throws bad_argument with a suggestion for an unknown option of the chosen command. CLI11 lists it, and the value
// after it, as unexpected arguments.
void require_known_options(const CLI::App& app);

// Returns one sentence about arguments that do not fit the command: "--json cannot be used with --logits". For missing
// and superfluous arguments it adds the usage line. Requires: the error does not ask for help.
std::string make_usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace poise::cli
