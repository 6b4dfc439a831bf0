// poise report: writes one page about a model, for a browser.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <poise/error.hpp>

#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/sink.hpp"
#include "io/streams.hpp"
#include "report/report.hpp"

namespace poise::cli {
namespace {

struct ReportArguments {
  std::string path;
  std::string against;
  std::string output;
  bool force = false;
  ProgressOptions progress;
  ReadOptions read;
};

std::vector<std::filesystem::path> list_inputs(const ReportArguments& options) {
  std::vector<std::filesystem::path> inputs;
  for (const std::string& path : {options.path, options.against}) {
    if (!path.empty() && !is_stream_or_url(path)) inputs.emplace_back(path);
  }
  return inputs;
}

void write_page(SavedOutput& output, const std::string& page) {
  output.main().write(std::as_bytes(std::span(page)));
  output.commit();
}

void run_report(const ReportArguments& arguments) {
  const bool writes_stream = arguments.output == "-";
  if (writes_stream && ::isatty(STDOUT_FILENO) != 0)
    throw Error(ErrorKind::bad_argument,
                "\"-o -\" writes the page to standard output, which is a terminal; redirect it to a file or a pipe");
  if (!writes_stream) FileOutput::check_replaceable(arguments.output, arguments.force, list_inputs(arguments));
  ReportOptions options{.read = arguments.read, .progress = make_progress(arguments.progress, "report")};
  ReportInputs inputs{open_input(arguments.path, arguments.read), {}};
  if (!arguments.against.empty())
    add_path_to_errors(arguments.against, [&] { inputs.against = open_input(arguments.against, arguments.read); });
  const std::string page = make_report(inputs, options);
  options.progress = {};  // erases the bar
  if (writes_stream) {
    StreamOutput output(STDOUT_FILENO, "standard output");
    return write_page(output, page);
  }
  FileOutput output(arguments.output, arguments.force, list_inputs(arguments));
  write_page(output, page);
  if (!arguments.progress.quiet)
    fmt::print("{}: one page for any browser, {}\n", make_printable(arguments.output), format_bytes(page.size()));
}

}  // namespace

void add_report_command(CLI::App& app) {
  const auto options = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Write one page for a browser about a model: sizes, numbers, findings, memory, tokens, digests");
  command->add_option("MODEL", options->path, "Model file or directory; - is standard input")->required();
  command->add_option("OUT,-o,--output", options->output, "Page to write: FILE.html; - is standard output")
      ->required()
      ->check(make_nonempty_check());
  add_text_option(*command, "--against", options->against, "OTHER",
                  "The model that MODEL was made from: shows what differs, and what quantizing cost");
  command->add_flag("--force", options->force, "Replace a page that exists");
  add_progress_options(*command, options->progress, "Print nothing; no progress");
  add_read_options(*command, options->read);
  command->callback([options] { run_report(*options); });
}

}  // namespace poise::cli
