// The screens that help: what a command does and takes, in lines that fit the terminal.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace poise::cli {

// How CLI11 lays out help: names in a column, descriptions beside them, each argument once.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// The screen of the whole command, whatever has been parsed.
std::string overview(const CLI::App& app);

}  // namespace poise::cli
