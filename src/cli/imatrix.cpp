// poise imatrix: measures an importance matrix, or adds several up.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/imatrix.hpp>

#include "api/imatrix_file.hpp"
#include "api/report_values.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/sink.hpp"

namespace poise::cli {
namespace {

struct ImatrixArguments {
  ModelOptions model;
  std::string text;
  std::string output;
  std::vector<std::filesystem::path> earlier;
  bool resume = false;
  bool force = false;
  bool json = false;
  ImatrixOptions measure;
  ProgressOptions progress;
};

void check_imatrix_arguments(const ImatrixArguments& options) {
  const std::string extension = to_lower_ascii(std::filesystem::path(options.output).extension().string());
  if (extension != ".gguf" && extension != ".dat") {
    throw Error(ErrorKind::bad_argument,
                "expected a name that ends in .gguf, or in .dat for llama-imatrix's older format", options.output);
  }
  if (options.model.path.empty() && options.earlier.empty())
    throw Error(ErrorKind::bad_argument, "name MODEL and TEXT to measure, or files with --in-file to add up");
  if (!options.model.path.empty() && options.text.empty())
    throw Error(ErrorKind::bad_argument, "TEXT is missing: a file, or - for standard input");
  if (options.resume && (!options.earlier.empty() || options.text.empty()))
    throw Error(ErrorKind::bad_argument, "--resume continues one text: leave out --in-file");
}

std::vector<std::filesystem::path> list_imatrix_inputs(const ImatrixArguments& options) {
  std::vector<std::filesystem::path> inputs(options.earlier.begin(), options.earlier.end());
  if (options.text.empty()) return inputs;
  if (options.text != "-") inputs.emplace_back(options.text);
  if (!is_stream_or_url(options.model.path)) {
    const auto files = options.model.list_files();
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  return inputs;
}

// Returns the sums that an interrupted run has saved in the output file; std::nullopt if there is no such file.
std::optional<Imatrix> read_saved_sums(const ImatrixArguments& options) {
  std::error_code error;
  if (!options.resume || !std::filesystem::exists(options.output, error)) return std::nullopt;
  Imatrix begun = read_imatrix(options.output);
  const std::string dataset = begun.datasets.empty() ? std::string() : begun.datasets.back();
  if (begun.datasets.size() > 1 || dataset != options.measure.dataset) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("--resume: the file has sums of {}, but the text is {}; to add another text, give this "
                            "file to --in-file instead",
                            begun.datasets.empty() ? "no named text" : poise::list_names(begun.datasets),
                            options.measure.dataset),
                options.output);
  }
  if (begun.chunk_size != options.measure.chunk_size) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("--resume: the file has chunks of {} tokens, and --chunk-size is {}", begun.chunk_size,
                            options.measure.chunk_size),
                options.output);
  }
  return begun;
}

// Counts progress in bytes of the text instead of chunks, so that a rate can be shown.
Progress make_chunk_progress(const ProgressOptions& options, std::size_t bytes) {
  Progress display = make_progress(options, "imatrix");
  if (!display) return {};
  return [display = std::move(display), bytes](const ProgressEvent& chunks) {
    const std::string item = fmt::format("chunk {} of {}", std::min(chunks.done + 1, chunks.total), chunks.total);
    return display({bytes * chunks.done / std::max<std::uint64_t>(1, chunks.total), bytes, item});
  };
}

Imatrix measure_text(ImatrixArguments& options, const std::optional<Imatrix>& before, bool& overwrite) {
  const std::string name = get_input_name(options.text);
  std::string text = read_text_file(options.text);
  if (text.ends_with('\n')) text.pop_back();  // llama.cpp drops it, too
  ImatrixOptions& measure = options.measure;
  if (options.resume && before) {
    measure.skipped = static_cast<std::size_t>(before->count_chunks());
    if (measure.chunks) *measure.chunks -= std::min(*measure.chunks, measure.skipped);
  }
  const auto complete = [&](Imatrix sums) {
    if (!before) return sums;
    if (options.resume) sums.datasets.clear();
    Imatrix all = *before;
    all.chunk_size = sums.chunk_size;
    add_imatrix(all, sums);
    return all;
  };
  measure.save = [&](const Imatrix& sums) {
    save_imatrix(complete(sums), options.output, std::exchange(overwrite, true));
  };
  const Model model = options.model.open_model(options.progress.quiet);
  Imatrix sums;
  try {
    sums = measure_imatrix(model, text, measure, make_chunk_progress(options.progress, text.size()));
  } catch (const Error& error) {
    if (error.message().find("fewer than a chunk") == std::string::npos) throw;
    throw Error(ErrorKind::invalid_file, error.message(), name);
  }
  return complete(std::move(sums));
}

// Warns of experts that got no tokens, once for all matrices of a layer with the same unused experts.
void print_unused_experts(const std::vector<ImatrixGap>& gaps) {
  std::string last;
  for (const ImatrixGap& gap : gaps) {
    const std::string layer = gap.entry.substr(0, gap.entry.find('.', gap.entry.find('.') + 1));
    const std::string experts = fmt::format("{} {} of {}", gap.experts.size() == 1 ? "expert" : "experts",
                                            fmt::join(gap.experts, ", "), gap.count);
    if (std::exchange(last, layer + experts) == last) continue;
    print_message(fmt::format("warning: no token chose {} of {}, whose columns weigh the same: use a longer text",
                              experts, make_printable(layer)));
  }
}

void print_json(const ImatrixArguments& options, const Imatrix& imatrix, const std::vector<ImatrixGap>& gaps) {
  Value::Array datasets;
  for (const std::string& dataset : imatrix.datasets) datasets.emplace_back(dataset);
  const Attributes answer = {{"path", options.output},           {"entries", std::uint64_t{imatrix.entries.size()}},
                             {"chunks", imatrix.count_chunks()}, {"chunk_size", imatrix.chunk_size},
                             {"datasets", std::move(datasets)},  {"unused_experts", list_attributes(gaps)}};
  print_now(to_json(answer) + "\n");
}

void run_imatrix(ImatrixArguments& options) {
  check_imatrix_arguments(options);
  bool overwrite = options.force || options.resume;
  FileOutput::check_replaceable(options.output, overwrite, list_imatrix_inputs(options));
  if (!options.text.empty()) options.measure.dataset = get_input_name(options.text);
  std::optional<Imatrix> before = options.resume ? read_saved_sums(options) : add_imatrix_files(options.earlier);
  const Imatrix all = options.text.empty() ? *std::move(before) : measure_text(options, before, overwrite);
  save_imatrix(all, options.output, overwrite);
  const std::vector<ImatrixGap> gaps = find_imatrix_gaps(all);
  if (!options.progress.quiet) print_unused_experts(gaps);
  if (options.json) return print_json(options, all, gaps);
  if (options.progress.quiet) return;
  fmt::print("{}: sums of {}, {} of {} tokens\n", make_printable(options.output),
             format_count(all.entries.size(), "tensor"), format_count(all.count_chunks(), "chunk"), all.chunk_size);
}

}  // namespace

void add_imatrix_command(CLI::App& app) {
  const auto options = std::make_shared<ImatrixArguments>();
  CLI::App* command = app.add_subcommand(
      "imatrix",
      "Measure how much each column of the matrices matters, for `convert --imatrix`, as llama-imatrix does");
  command->add_option("MODEL", options->model.path, "Model file or directory, quantized or not");
  command->add_option("TEXT", options->text, "File with text like that which the model will meet; - is standard input");
  command->add_option("OUT,-o,--output", options->output, "File to write: FILE.gguf, or FILE.dat in the older format")
      ->required()
      ->check(make_nonempty_check());
  add_text_option(
      *command, "--in-file", options->earlier, "FILE",
      "Add the sums of another importance matrix; may be repeated. Without MODEL and TEXT, only add files up")
      ->allow_extra_args(false);
  command->add_flag("--resume", options->resume,
                    "Continue after the chunks that the output has, if it exists: a run that --save-every has saved");
  add_number_option(*command, "--save-every", options->measure.save_every,
                    "Write the output after every N chunks; 0: at the end");
  add_number_option(*command, "--chunk-size", options->measure.chunk_size, "Tokens that are computed together", {16});
  add_number_option(*command, "--chunks", options->measure.chunks, "Use at most N chunks of the text", {1});
  command->add_flag("--process-output", options->measure.output, "Measure the output matrix, too");
  add_number_option(*command, "--threads", options->measure.threads,
                    "The largest number of threads; 0: one per processor");
  command->add_flag("--exact", options->measure.exact, "Multiply in float32, without rounding to integers: slower");
  command->add_flag("--force", options->force, "Replace a file that exists");
  command->add_flag("--json", options->json, "Print an object: entries, chunks, experts without tokens");
  add_progress_options(*command, options->progress, "Print nothing; no progress, no notes");
  add_tokenizer_options(*command, options->model.tokenizer);
  add_lora_option(*command, options->model.lora);
  add_io_option(*command, options->model.read);
  command->callback([options] { add_path_to_errors(options->model.path, [&] { run_imatrix(*options); }); });
}

}  // namespace poise::cli
