// Options that several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <poise/format.hpp>

namespace poise::cli {

// --io map|read
void add_io_option(CLI::App& command, ReadOptions& options);

}  // namespace poise::cli
