// Adds options for the model that a command computes with, and opens the model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/format.hpp>
#include <poise/lora.hpp>
#include <poise/session.hpp>
#include <poise/weights.hpp>

#include "cli/options.hpp"
#include "formats/input.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {

// Opens a model to compute with. If a file has no configuration, adds the config.json and the tokenizer of its
// directory, if they exist; a note reports this unless `quiet`. Throws what open_model(path, options) throws.
Model open_runnable_model(const std::string& path, const ReadOptions& options, bool quiet);

struct ModelOptions {
  std::string path;
  ReadOptions read;
  std::vector<LoraAdapter> lora;
  TokenizerPaths tokenizer;
  RankSplit split = RankSplit::heads;

  // Opens the model, merges the adapters, and replaces the vocabulary by that of --vocab and --merges, if given. Throws
  // what open_runnable_model(), with_lora() and TokenizerPaths::read() throw.
  Model open_model(bool quiet) const;

  // Loads this rank's share of a model's weights. Throws what load_weights() throws.
  std::shared_ptr<const Weights> load(const Model& model) const;

  // Returns the paths in these options. For each directory, adds the paths of its files.
  std::vector<std::filesystem::path> list_files() const;
};

// Adds --vocab, --merges, --lora, --io, --split.
void add_model_options(CLI::App& command, ModelOptions& options);

// Adds the options that set `options`, and returns them. Requires: `options` outlives the command.
std::vector<const CLI::Option*> add_generate_options(CLI::App& command, GenerateOptions& options);
// Sets sampling options from the model's files, except those that the user gave; a note lists them unless `quiet`.
// `given` holds the options that add_generate_options() returned.
void use_sampling_defaults(const Model& model, const std::vector<const CLI::Option*>& given, SamplingOptions& sampling,
                           bool quiet);
// Adds --threads, --context, --exact, --cache.
void add_session_options(CLI::App& command, SessionOptions& options);

// Adds --draft, and returns it, so that callers can exclude other options.
CLI::Option* add_draft_option(CLI::App& command, std::string& draft);
// Returns the draft that the option's value names: "lookup", or a model, which this function opens. Returns
// std::nullopt if the text is empty.
std::optional<DraftOptions> open_draft(const std::string& draft, const ModelOptions& options, bool quiet);

// Throws bad_argument for sampling options and stop texts that are invalid for every model.
void check_generate_options(const GenerateOptions& options);

// In these functions, `path` names a file, a directory or a pipe, or it is a URL, or "-" for standard input.

// Returns true for "-" (standard input), for pipes, and for URLs.
bool is_stream_or_url(const std::string& path);

// Returns the file or directory at a path, or the file in a stream. Throws what Source::open() and open_url() throw,
// and bad_argument for a terminal, for a second use of standard input, and for a stream that several ranks would read.
Input open_input(const std::string& path, const ReadOptions& options);
// Returns the model in a file, a directory or a stream. Throws the errors of open_input() and open().
Model open_model(const std::string& path, const ReadOptions& options);

}  // namespace poise::cli
