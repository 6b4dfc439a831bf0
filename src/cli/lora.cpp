// poise lora: makes adapters from two models, and converts them between the forms of PEFT and llama.cpp.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/make_lora.hpp>

#include "api/report_values.hpp"
#include "cli/commands.hpp"
#include "cli/conversion_options.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/hub_cache.hpp"

namespace poise::cli {
namespace {

enum class LoraAction : std::uint8_t { none, extract, convert };

struct LoraArguments {
  LoraAction action = LoraAction::none;
  std::vector<std::string> paths;
  std::string output;
  std::string base;
  ExtractLoraOptions extract;
  ProgressOptions progress;
  bool json = false;

  bool writes_stream() const { return output == "-" && !extract.dry_run; }
};

void require_path_count(const LoraArguments& options, std::size_t count, std::string_view usage) {
  if (options.paths.size() == count) return;
  throw Error(ErrorKind::bad_argument, fmt::format("expected {} path{} before the options, found {}; usage: {}", count,
                                                   count == 1 ? "" : "s", options.paths.size(), usage));
}

std::string describe_output(const LoraArguments& options) {
  return make_printable(options.output) + (options.extract.dry_run ? " (dry run, nothing is written)" : "");
}

std::string format_matrix_count(std::size_t count) {
  return fmt::format("{} {}", group_digits(count), count == 1 ? "matrix" : "matrices");
}

void print_lora_notes(const std::vector<std::string>& warnings, const std::vector<std::string>& losses) {
  for (const auto* texts : {&warnings, &losses}) {
    for (const std::string& text : *texts) print_note({Severity::warning, text, {}, std::nullopt});
  }
}

void print_extraction(const ExtractLoraReport& report, const LoraArguments& options) {
  fmt::print("{} -> {}: {}\n", make_printable(options.paths[0]), make_printable(options.paths[1]),
             describe_output(options));
  Table table({"MATRIX", "SHAPE", "RANK", "RMS", "CAPTURED"}, {false, false, true, true, true});
  for (const ExtractedMatrix& matrix : report.matrices) {
    table.add({make_printable(matrix.name), poise::to_string(matrix.shape), fmt::format("{}", matrix.rank),
               format_number(matrix.rms), fmt::format("{:.2f} %", 100 * matrix.captured)});
  }
  fmt::print("{}", table.text());
  fmt::print("{}, {:.2f} % of the squared difference; {} {} equal; {} in {}\n",
             format_matrix_count(report.matrices.size()), 100 * report.captured, group_digits(report.equal),
             report.equal == 1 ? "tensor is" : "tensors are", format_bytes(report.bytes_out),
             format_seconds(report.seconds));
}

void print_extraction_json(const ExtractLoraReport& report, const LoraArguments& options) {
  JsonOutput json;
  json->begin_object();
  json->write_member("base", options.paths[0]);
  json->write_member("tuned", options.paths[1]);
  json->write_member("output", report.output.empty() ? Value() : Value(report.output.string()));
  json->write_member("format", report.format);
  json.write_list("matrices", report.matrices,
                  [&](const ExtractedMatrix& matrix) { json->write_value(make_attributes(matrix)); });
  json->write_member("captured", report.captured);
  json->write_member("equal", std::uint64_t{report.equal});
  json.write_list("warnings", report.warnings, [&](const std::string& text) { json->write_value(text); });
  json.write_list("losses", report.losses, [&](const std::string& text) { json->write_value(text); });
  json->write_member("bytes_out", report.bytes_out);
  json->write_member("seconds", report.seconds);
  json->end_object();
  json.finish();
}

void run_extract(LoraArguments& options) {
  require_path_count(options, 2, "poise lora extract BASE TUNED -o OUT [OPTIONS]");
  if (!options.base.empty())
    throw Error(ErrorKind::bad_argument,
                "--base is an option of poise lora convert: extract takes BASE as an argument");
  if (options.writes_stream()) require_standard_output(options.extract.format, options.json);
  options.extract.write.progress = make_progress(options.progress, "extract");
  const std::string base = find_model_path(options.paths[0]);
  const std::string tuned = find_model_path(options.paths[1]);
  std::optional<StreamOutput> stream;
  const ExtractLoraReport report =
      extract_lora(base, tuned, make_destination(options.output, options.extract.dry_run, stream), options.extract);
  options.extract.write.progress = {};  // wipes the bar before the report is printed
  if (options.json) return print_extraction_json(report, options);
  if (options.progress.quiet) return;
  print_lora_notes(report.warnings, report.losses);
  if (!stream) print_extraction(report, options);
}

void print_conversion_json(const ConvertLoraReport& report, const LoraArguments& options) {
  JsonOutput json;
  json->begin_object();
  json->write_member("adapter", options.paths[0]);
  json->write_member("output", report.output.empty() ? Value() : Value(report.output.string()));
  json->write_member("format", report.format);
  json->write_member("matrices", std::uint64_t{report.matrices});
  json.write_list("warnings", report.warnings, [&](const std::string& text) { json->write_value(text); });
  json.write_list("losses", report.losses, [&](const std::string& text) { json->write_value(text); });
  json->write_member("bytes_out", report.bytes_out);
  json->end_object();
  json.finish();
}

void run_convert_lora(LoraArguments& options) {
  require_path_count(options, 1, "poise lora convert ADAPTER -o OUT [OPTIONS]");
  ConvertLoraOptions convert;
  if (!options.base.empty()) convert.base = find_model_path(options.base);
  convert.format = options.extract.format;
  convert.dry_run = options.extract.dry_run;
  convert.read = options.extract.read;
  convert.write = options.extract.write;
  if (options.writes_stream()) require_standard_output(convert.format, options.json);
  convert.write.progress = make_progress(options.progress, "convert");
  const std::string adapter = find_model_path(options.paths[0]);
  std::optional<StreamOutput> stream;
  const ConvertLoraReport report =
      convert_lora(adapter, make_destination(options.output, convert.dry_run, stream), convert);
  convert.write.progress = {};  // wipes the bar before the report is printed
  if (options.json) return print_conversion_json(report, options);
  if (options.progress.quiet) return;
  print_lora_notes(report.warnings, report.losses);
  if (stream) return;
  fmt::print("{} -> {} ({})\n  {}, {}\n", make_printable(options.paths[0]), describe_output(options), report.format,
             format_matrix_count(report.matrices), format_bytes(report.bytes_out));
}

}  // namespace

void add_lora_command(CLI::App& app) {
  constexpr const char* kExtract = "Extract";
  constexpr const char* kConvert = "Convert";
  const auto options = std::make_shared<LoraArguments>();
  CLI::App* command =
      app.add_subcommand("lora", "Extract an adapter from two models, or convert one between PEFT's and GGUF's form");
  add_choice_option<LoraAction, LoraAction>(
      *command, "ACTION", options->action, {{"extract", LoraAction::extract}, {"convert", LoraAction::convert}},
      "extract BASE TUNED: the difference of two models; convert ADAPTER: another form")
      ->required();
  command->add_option("PATHS", options->paths, "The two models, or the adapter: files or directories")->required();
  add_text_option(*command, "-o,--output", options->output, "OUT",
                  "File or directory to write: GGUF has llama.cpp's form, other formats PEFT's; - is standard output")
      ->required();
  add_text_option(*command, "--to", options->extract.format, "FORMAT", "Format of the output (default: by its name)");
  add_number_option(*command, "-r,--rank", options->extract.rank, "Rank of the product for each matrix", {1, 65536})
      ->group(kExtract);
  command->add_option("--only", options->extract.only, "Look only at tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false)
      ->group(kExtract);
  command->add_option("--skip", options->extract.skip, "Leave out tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false)
      ->group(kExtract);
  command
      ->add_flag_callback(
          "--no-verify", [options] { options->extract.verify = false; }, "Trust the models: do not check their digests")
      ->group(kExtract);
  add_text_option(*command, "--base", options->base, "MODEL",
                  "The adapter's base, or its config.json (default: what the adapter names)")
      ->group(kConvert);
  command->add_flag("--dry-run", options->extract.dry_run, "Compute and report everything; write nothing");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->add_flag("--force", options->extract.write.overwrite, "Replace an existing output");
  add_storage_options(*command, options->extract.write);
  add_progress_options(*command, options->progress, "No progress, no report and no notes");
  add_io_option(*command, options->extract.read);
  command->footer("poise convert BASE --lora ADAPTER -o OUT merges an adapter into its base (docs/lora.md).\n");
  command->callback([options, command] {
    if (options->action == LoraAction::extract) return run_extract(*options);
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group() == kExtract && option->count() > 0)
        throw Error(ErrorKind::bad_argument, fmt::format("{} is an option of poise lora extract", option->get_name()));
    }
    run_convert_lora(*options);
  });
}

}  // namespace poise::cli
