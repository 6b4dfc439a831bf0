// Shows the progress of long calls on standard error.
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
  std::optional<ProgressDisplay> display;  // default: none if quiet, else automatic
  bool quiet = false;
};

// --progress auto|plain|none and --quiet, described by `quiet`. Requires: `options` outlive the command.
void add_progress_options(CLI::App& command, ProgressOptions& options, const std::string& quiet);

// The display that the options ask for, which begins with `verb`; empty for none. The last copy of the returned object
// erases the bar.
Progress make_progress(const ProgressOptions& options, const std::string& verb);

}  // namespace poise::cli
