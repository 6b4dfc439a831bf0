// Options that several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <poise/format.hpp>

namespace poise::cli {

// --io map|read
void add_io_option(CLI::App& command, ReadOptions& options);

// --compress, --digest, --align, --shard-size: how a container stores its parts
void add_storage_options(CLI::App& command, WriteOptions& options);

}  // namespace poise::cli
