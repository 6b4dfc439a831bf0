// The commands of `poise`, one function and one file each.
#pragma once

#include <CLI/CLI.hpp>

namespace poise::cli {

// Each adds its subcommand, whose callback does the work and throws poise::Error. A command with a negative answer
// (verify, diff) prints it and throws ExitCode{1}.
struct ExitCode {
  int code;
};

void add_inspect(CLI::App& app);
void add_verify(CLI::App& app);
void add_convert(CLI::App& app);
void add_hash(CLI::App& app);
void add_diff(CLI::App& app);
void add_edit(CLI::App& app);
void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_embed(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_help(CLI::App& app);

}  // namespace poise::cli
