// poise fetch: downloads a model from the Hugging Face Hub.
#include <memory>
#include <string>

#include <fmt/format.h>

#include <poise/fetch.hpp>

#include "bytes/short_text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

struct FetchArguments {
  std::string url;
  std::string output;
  FetchOptions options;
  ProgressOptions progress;
  bool json = false;
};

void print_json(const FetchReport& report) {
  JsonOutput json;
  json->begin_object();
  json->write_member("directory", report.directory.string());
  json->write_member("commit", report.commit);
  json->write_member("files", report.files);
  json->write_member("files_kept", report.kept);
  json->write_member("bytes", report.bytes);
  json->write_member("bytes_kept", report.bytes_kept);
  json->end_object();
  json.finish();
}

void run_fetch(FetchArguments& arguments) {
  arguments.options.output = arguments.output;
  arguments.options.progress = make_progress(arguments.progress, "fetch");
  const FetchReport report = fetch(arguments.url, arguments.options);
  arguments.options.progress = {};  // wipes the bar
  if (arguments.json) return print_json(report);
  if (arguments.progress.quiet) return;
  fmt::print("{}: {} at commit {}: {} received, {} of {} were there; all digests are right\n",
             make_printable(report.directory.string()), format_count(report.files, "file"), report.commit,
             format_bytes(report.bytes), report.kept, report.files);
}

}  // namespace

void add_fetch_command(CLI::App& app) {
  const auto arguments = std::make_shared<FetchArguments>();
  CLI::App* command = app.add_subcommand("fetch", "Download a model from the Hugging Face Hub, and check its digests");
  command
      ->add_option("URL", arguments->url,
                   "hf://ORG/NAME[@REVISION][/FILE]. An interrupted fetch goes on where it stopped")
      ->required();
  add_text_option(
      *command, "-o,--output", arguments->output, "DIR",
      "Write plain files to this directory (default: the Hub's cache, which HF_HUB_CACHE and HF_HOME choose)");
  command->add_option("--only", arguments->options.only, "Fetch only files that match; may be repeated")
      ->type_name("GLOB")
      ->take_all()
      ->allow_extra_args(false);
  add_number_option(*command, "--parallel", arguments->options.parallel, "Files at once, at most 16", {1, 16});
  command->add_flag("--force", arguments->options.overwrite, "Replace files in DIR whose content differs");
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  add_progress_options(*command, arguments->progress, "Print only errors; no progress");
  command->callback([arguments] { run_fetch(*arguments); });
}

}  // namespace poise::cli
