// Adds the options of the commands `convert` and `merge`, and opens outputs that may be standard output.
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

// Completes the options after parsing. Throws bad_argument if options exclude or need each other, if the output is a
// file that an option reads, and if the output's extension looks misspelled. Throws what parse_settings() throws.
void finish_conversion_options(ConversionArguments& options);

// Throws bad_argument unless a command can write a file of this format to standard output: standard output is not a
// terminal, --json does not use it, and `format` is neither empty nor a format of directories.
void require_standard_output(const std::string& format, bool json);

// Returns the destination that a path names. For "-", opens standard output in `stream`; in a dry run, returns an empty
// path instead. Requires: `stream` outlives the result.
Destination make_destination(const std::string& path, bool is_dry_run, std::optional<StreamOutput>& stream);

// Writes a plan to standard output. Throws bad_argument for a terminal, and for a format of directories.
ConvertReport write_to_standard_output(const Plan& plan);

}  // namespace poise::cli
