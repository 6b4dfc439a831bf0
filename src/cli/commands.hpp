// Declares the commands of `poise`: each has one function and one file.
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

// A command throws this to end with an exit code. A command with a negative answer (verify, diff) prints the answer and
// throws ExitCode{1}.
struct ExitCode {
  int code;
};

// Each function adds its subcommand, whose callback does the work and throws poise::Error.
void add_inspect_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_convert_command(CLI::App& app);
void add_merge_command(CLI::App& app);
void add_delta_command(CLI::App& app);
void add_lora_command(CLI::App& app);
void add_fetch_command(CLI::App& app);
void add_hash_command(CLI::App& app);
void add_stats_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_diff_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_edit_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_imatrix_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_help_command(CLI::App& app);

// `poise convert` and `poise merge` call these functions to report a conversion or a plan.

// Prints the warnings, the losses, and a note about codes that are decoded, on standard error.
void print_notes(const ConvertReport& report);

// Prints sizes, casts, quantized types, and the tensors with the largest loss (or all tensors) on standard output.
void print_conversion(const ConvertReport& report, const std::string& input, const ConvertOptions& options,
                      bool all_tensors);
// Prints what print_notes() and print_conversion() print, as JSON (docs/json.md).
void print_report_json(const ConvertReport& report, const std::string& input);

// Prints the plan as a table, with notes on standard error unless `quiet`.
void print_plan(const Plan& plan, const std::string& input, const ConvertOptions& options, bool quiet);
// Prints the plan as JSON (docs/plan.md).
void print_plan_json(const Plan& plan, const std::string& input, const ConvertOptions& options);

// These functions print or make the JSON of `poise inspect --json`.

// Prints the model that was opened at `path`, and the metadata keys of its file if they are given. Throws what reading
// the scale of an affine tensor throws.
void print_inspection_json(const Model& model, const std::string& path,
                           const std::optional<std::vector<MetadataKey>>& keys);

// Returns the number of tokens, the ids of special tokens, and the longest sequence.
Attributes describe_vocabulary(const Vocabulary& vocabulary);

// `poise run --perplexity` measures how well a model predicts texts, and how far its predictions are from another
// model's.

struct PerplexityOptions {
  std::string file;                   // the file with texts, separated by empty lines; empty for no perplexity
  std::string against;                // the path of the base model; empty for none
  std::optional<std::size_t> window;  // tokens of a window; std::nullopt: each text is computed alone
  std::optional<std::size_t> stride;
};

// Adds --perplexity, --against, --window and --stride. Returns the option --perplexity. Requires: `options` outlive the
// command.
CLI::Option* add_perplexity_options(CLI::App& command, PerplexityOptions& options);

// Prints the perplexity as a table, or with `json` as an object. Returns the number of tokens that were predicted.
std::size_t print_perplexity(const PerplexityOptions& options, std::shared_ptr<const Weights> model,
                             std::shared_ptr<const Weights> base, const SessionOptions& session, bool json,
                             const ProgressOptions& progress);

// `poise run --prompts` answers many prompts from a file, several at a time.

struct PromptsOptions {
  std::string file;    // "-" for standard input; empty for no prompts
  std::string output;  // empty or "-": standard output
  bool force = false;  // replaces an output that exists
  std::size_t parallel = 8;
  RankSplit split = RankSplit::heads;         // how several ranks divide the work
  std::vector<std::filesystem::path> inputs;  // other files that the command reads, which the output must not replace
};

// Returns the name of the file that holds the answers until all of them are there.
std::string make_partial_name(const std::string& output);

// Adds --prompts, -o, --force and --parallel. Returns the option --prompts. Requires: `options` outlive the command.
CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options);

struct PromptsSummary {
  std::size_t texts = 0;   // generated texts
  std::size_t kept = 0;    // texts that an interrupted run had written
  std::size_t tokens = 0;  // generated tokens
};

// Reads a prompt from each line, which is a JSON object, and writes the answers in the same order. Continues where an
// earlier run of the same command was interrupted. Throws invalid_file, with the number of the line, for a line that is
// not such an object; bad_argument if the output is also an input, exists already, or was begun by another command.
PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate);

// Returns the columns by which `poise stats --sort` orders tensors.
std::vector<std::string_view> list_statistics_columns();

// Sets a signal handler: from now on, a mapped file that another program shortens while Poise reads it ends the process
// with a message and exit code 1, instead of a core dump. (A program that uses the library can avoid this signal with
// IoMode::read.)
void handle_shrinking_files();

}  // namespace poise::cli
