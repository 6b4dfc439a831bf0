// poise delta: writes what a model changes in its base.
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <poise/delta.hpp>
#include <poise/error.hpp>

#include "api/report_values.hpp"
#include "cli/commands.hpp"
#include "cli/conversion_options.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "io/hub_cache.hpp"
#include "ops/conversion.hpp"

namespace poise::cli {
namespace {

struct DeltaArguments {
  std::string base;
  std::string tuned;
  std::string output;
  DeltaOptions delta;
  ProgressOptions progress;
  bool json = false;
};

void print_json(const DeltaReport& report, const DeltaArguments& options) {
  JsonOutput json;
  json->begin_object();
  json->write_member("base", options.base);
  json->write_member("tuned", options.tuned);
  json->write_member("output", report.output.empty() ? Value() : Value(report.output.string()));
  json->write_member("base_hash", report.base);
  json->write_member("equal", std::uint64_t{report.equal});
  json.write_list("changed", report.changed,
                  [&](const DeltaTensor& tensor) { json->write_value(make_attributes(tensor)); });
  json.write_list("removed", report.removed, [&](const std::string& name) { json->write_value(name); });
  json.write_list("fields", report.fields, [&](const std::string& name) { json->write_value(name); });
  json->write_member("bytes_in", report.bytes_in);
  json->write_member("bytes_out", report.bytes_out);
  json->write_member("seconds", report.seconds);
  json->end_object();
  json.finish();
}

void print_report(const DeltaReport& report, const DeltaArguments& options) {
  fmt::print("{} -> {}: {}{}\n", make_printable(options.base), make_printable(options.tuned),
             make_printable(options.output), options.delta.dry_run ? " (dry run, nothing is written)" : "");
  fmt::print("  {} for {} of models, in {}\n", format_bytes(report.bytes_out), format_bytes(report.bytes_in),
             format_seconds(report.seconds));
  fmt::print("  {} tensors are equal\n", group_digits(report.equal));
  for (const std::string_view form : {"sparse", "xor", "whole"}) {
    DeltaTensor sum;
    std::uint64_t tensors = 0;
    for (const DeltaTensor& tensor : report.changed) {
      if (tensor.form != form) continue;
      ++tensors;
      sum.changed += tensor.changed;
      sum.elements += tensor.elements;
      sum.bytes += tensor.bytes;
    }
    if (tensors > 0)
      fmt::print("  {} {}: {} of {} elements, {} before compression\n", group_digits(tensors), form,
                 group_digits(sum.changed), group_digits(sum.elements), format_bytes(sum.bytes));
  }
  if (!report.removed.empty()) fmt::print("  {} removed\n", group_digits(report.removed.size()));
  for (const std::string& field : report.fields) fmt::print("  {} differs\n", field);
  fmt::print("  base {}\n", report.base);
}

void run_delta(DeltaArguments& options) {
  if (options.output == "-" && !options.delta.dry_run) require_standard_output("zt", options.json);
  options.delta.write.progress = make_progress(options.progress, "delta");
  const std::string base = find_model_path(options.base);
  const std::string tuned = find_model_path(options.tuned);
  std::optional<StreamOutput> stream;
  const DeltaReport report =
      make_delta(base, tuned, make_destination(options.output, options.delta.dry_run, stream), options.delta);
  options.delta.write.progress = {};  // wipes the bar before the report is printed
  if (stream) return;
  if (options.json) return print_json(report, options);
  if (!options.progress.quiet) print_report(report, options);
}

}  // namespace

void add_delta_command(CLI::App& app) {
  const auto options = std::make_shared<DeltaArguments>();
  CLI::App* command = app.add_subcommand("delta", "Write a small file with what a model changes in its base");
  command->add_option("BASE", options->base, "Model file or directory that TUNED was made from")->required();
  command->add_option("TUNED", options->tuned, "Model file or directory with the changes")->required();
  command->add_option("OUT,-o,--output", options->output, "File to write, in the format zt; - is standard output")
      ->required();
  command->add_flag("--dry-run", options->delta.dry_run,
                    "Compute the delta and report its size; read everything and write nothing");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->add_flag("--force", options->delta.write.overwrite, "Replace an existing output");
  add_storage_options(*command, options->delta.write);
  add_progress_options(*command, options->progress, "No progress and no report");
  add_read_options(*command, options->delta.read);
  command->footer("poise convert BASE --delta FILE -o OUT makes TUNED again (docs/deltas.md).\n");
  command->callback([options] { run_delta(*options); });
}

}  // namespace poise::cli
