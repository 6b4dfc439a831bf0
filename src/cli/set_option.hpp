// The option --set KEY=TEXT|@FILE of edit, convert and merge.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/value.hpp>

namespace poise::cli {

// Adds the option, which may be repeated. parse_settings() reads its values after the other options.
CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& values, const std::string& description);

// Returns each "KEY=TEXT" as key and text, divided at the first "="; "KEY=@FILE" has the file's text ("-": standard
// input), and "KEY=@@TEXT" the text "@TEXT". Throws what refuse() throws, bad_argument for a file that is not UTF-8 or
// too long, and what reading throws.
std::vector<std::pair<std::string, Value>> parse_settings(const std::vector<std::string>& values);

}  // namespace poise::cli
