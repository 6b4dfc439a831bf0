// Adds the options --set KEY=TEXT|@FILE and --set-file KEY=FILE of the commands edit, convert and merge.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/value.hpp>

namespace poise::cli {

// Adds both options, which may be repeated, and returns --set. Both add to `values`, which parse_settings() takes after
// all options are parsed.
CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& values, const std::string& description);

// Divides each "KEY=TEXT" at the first "=", and returns the keys and texts. The text of "KEY=@FILE" is the content of
// the file ("-" for standard input). The text of "KEY=@@TEXT" is "@TEXT". Throws what refuse() throws; bad_argument for
// a file that is not UTF-8 or too long; and the errors of reading the file.
std::vector<std::pair<std::string, Value>> parse_settings(const std::vector<std::string>& values);

// Returns the files that parse_settings() reads.
std::vector<std::filesystem::path> list_value_files(const std::vector<std::string>& values);

}  // namespace poise::cli
