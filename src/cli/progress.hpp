// How far a long call is, told on standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <poise/progress.hpp>

namespace poise::cli {

enum class ProgressDisplay : std::uint8_t {
  automatic,  // a bar on a terminal, else nothing
  plain,      // a line every few seconds, and one at the end, for logs
  none,
};

struct ProgressOptions {
  std::optional<ProgressDisplay> display;  // where nothing is chosen: none if quiet, else automatic
  bool quiet = false;
};

// --progress auto|plain|none and --quiet, which `quiet` describes. Requires: `options` outlive the command.
void add_progress_options(CLI::App& command, ProgressOptions& options, const std::string& quiet);

// Tells what the options ask for, beginning with `verb`; empty where that is nothing. A bar is wiped when the returned
// object's last copy goes.
Progress make_progress(const ProgressOptions& options, const std::string& verb);

}  // namespace poise::cli
