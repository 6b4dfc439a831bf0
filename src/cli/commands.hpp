// The commands of `poise`, one function and one file each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/batch.hpp>
#include <poise/convert.hpp>
#include <poise/model.hpp>
#include <poise/session.hpp>
#include <poise/weights.hpp>

#include "cli/conversations.hpp"
#include "cli/progress.hpp"
#include "formats/format.hpp"
#include "runtime/ranks.hpp"

namespace poise::cli {

// Ends a command with this exit code. A command with a negative answer (verify, diff) prints it and throws ExitCode{1}.
struct ExitCode {
  int code;
};

// Each function adds its subcommand, whose callback does the work and throws poise::Error.
void add_inspect(CLI::App& app);
void add_verify(CLI::App& app);
void add_convert(CLI::App& app);
void add_merge(CLI::App& app);
void add_delta(CLI::App& app);
void add_fetch(CLI::App& app);
void add_hash(CLI::App& app);
void add_stats(CLI::App& app);
void add_show(CLI::App& app);
void add_diff(CLI::App& app);
void add_report(CLI::App& app);
void add_edit(CLI::App& app);
void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_embed(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_bench(CLI::App& app);
void add_imatrix_command(CLI::App& app);
void add_completion(CLI::App& app);
void add_help(CLI::App& app);

// Reports of `poise convert` and `poise merge` about a conversion and a plan.

// Prints warnings, losses and decoded codes on standard error.
void print_notes(const ConvertReport& report);

// Prints sizes, casts, quantized types, and the tensors with the largest loss (or all tensors) on standard output.
void print_conversion(const ConvertReport& report, const std::string& input, const ConvertOptions& options,
                      bool all_tensors);
// Prints the same and the notes as JSON (docs/json.md).
void print_report_json(const ConvertReport& report, const std::string& input);

// Prints the plan as a table, with notes on standard error unless `quiet`.
void print_plan(const Plan& plan, const std::string& input, const ConvertOptions& options, bool quiet);
// Prints the plan as JSON (docs/plan.md).
void print_plan_json(const Plan& plan, const std::string& input, const ConvertOptions& options);

// Objects that `poise inspect --json` prints.

// Prints the model opened at `path`, and the metadata keys of its file if given. Throws what finding the scale of an
// affine tensor throws.
void print_inspection_json(const Model& model, const std::string& path,
                           const std::optional<std::vector<MetadataKey>>& keys);

// Returns the sizes of a vocabulary, without its tokens.
Attributes describe_vocabulary(const Vocabulary& vocabulary);

// poise run --perplexity: how well a model predicts texts, and how far its predictions are from another model's.

struct PerplexityOptions {
  std::string file;                   // of texts, separated by empty lines; empty: no perplexity
  std::string against;                // the base's path; empty: none
  std::optional<std::size_t> window;  // tokens of a window; std::nullopt: each text is computed alone
  std::optional<std::size_t> stride;
};

// Adds --perplexity, --against, --window, --stride. Returns the first. Requires: the options outlive the command.
CLI::Option* add_perplexity_options(CLI::App& command, PerplexityOptions& options);

// Prints the perplexity as a table, or with `json` as an object. Returns the number of tokens that were predicted.
std::size_t print_perplexity(const PerplexityOptions& options, std::shared_ptr<const Weights> model,
                             std::shared_ptr<const Weights> base, const SessionOptions& session, bool json,
                             const ProgressOptions& progress);

// poise run --prompts: many prompts from a file, several at a time.

struct PromptsOptions {
  std::string file;    // "-": standard input; empty: no prompts
  std::string output;  // empty or "-": standard output
  bool force = false;  // replaces an output that exists
  std::size_t parallel = 8;
  RankSplit split = RankSplit::heads;         // of several ranks
  std::vector<std::filesystem::path> inputs;  // other files that the command reads: never the output
};

// Returns the name of the file that holds the answers until all of them are there.
std::string make_partial_name(const std::string& output);

// Adds --prompts, -o, --force, --parallel. Returns the first. Requires: the options outlive the command.
CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options);

struct PromptsSummary {
  std::size_t texts = 0;   // generated texts
  std::size_t kept = 0;    // texts that an interrupted run had written
  std::size_t tokens = 0;  // generated tokens
};

// Reads a prompt from each line, a JSON object, and writes an answer for each, in the same order. Continues where the
// same command was interrupted. Throws invalid_file, with the line, for other objects; bad_argument for an output that
// is an input, that exists, or that another command began.
PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate);

// The following function is for mapped files that another program truncates.

// Sets a handler: from now on, reading a missing page ends the process with a message and exit code 1 instead of a core
// dump. (A program that uses the library avoids this signal with IoMode::read.)
void report_files_that_shrink();

}  // namespace poise::cli
