// Help screens, in lines that fit the terminal.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace poise::cli {

// The layout of help: names in a column, descriptions next to them, each argument once.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// "poise diff A B [OPTIONS]"
std::string usage_line(const CLI::App& command);

// The screen of the whole command, independent of what was parsed.
std::string overview(const CLI::App& app);

}  // namespace poise::cli
