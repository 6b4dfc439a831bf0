// Adds the options of the commands that convert a model: convert and merge.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/convert.hpp>

#include "cli/progress.hpp"
#include "io/streams.hpp"
#include "ops/destination.hpp"

namespace poise::cli {

struct ConversionArguments {
  std::string output;
  ConvertOptions convert;
  std::vector<std::string> set;
  std::string text_file;  // of --text; empty without it
  ProgressOptions progress;
  bool table = false;
  bool dry_run = false;
  bool json = false;

  bool writes_stream() const { return output == "-"; }
};

// Adds the options -o, --to, --dtype, --quantize and others. The help lists types and formats below the options.
// `output` holds the names of the option for the output.
void add_conversion_options(CLI::App& command, ConversionArguments& options, const std::string& output);

// Completes the options after parsing. Throws bad_argument for options that exclude or need each other, by their names
// on the command line, for an output that is one of their files, and for an extension that looks like a misspelled one;
// and what parse_settings() throws.
void finish_conversion_options(ConversionArguments& options);

// Throws bad_argument unless a command can write a file of this format to standard output: standard output is not a
// terminal, --json does not use it, and `format` is given and is not one of directories.
void require_standard_output(const std::string& format, bool json);

// Returns the destination that a path names: "-" is standard output, which the function opens in `stream`, and which a
// dry run does not need. Requires: `stream` outlives the result.
Destination make_destination(const std::string& path, bool is_dry_run, std::optional<StreamOutput>& stream);

// Writes a plan to standard output. Throws bad_argument for a terminal, and for a format of directories.
ConvertReport write_to_standard_output(const Plan& plan);

}  // namespace poise::cli
