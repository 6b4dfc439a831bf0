// poise diff: shows how two models differ, across formats. Exits with 0 if they are equal, else with 1.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <poise/diff.hpp>

#include "bytes/short_text.hpp"
#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "model/same_headers.hpp"
#include "ops/ranks.hpp"

namespace poise::cli {
namespace {

struct DiffArguments {
  std::string a;
  std::string b;
  DiffOptions diff;
  ReadOptions read;
  ProgressOptions progress;
  bool json = false;
};

bool has_equal_numbers(const TensorDifference& tensor) {
  return tensor.what == TensorDifference::What::type && tensor.values && tensor.values->max_absolute == 0;
}

std::string shorten_value(const std::string& value) {
  constexpr std::size_t kLongest = 60;
  return make_printable(shorten(value, kLongest));
}

void print_fields(const DiffReport& report, const DiffArguments& options) {
  if (report.fields.empty()) return;
  Table table({"field", make_printable(options.a), make_printable(options.b)}, {false, false, false});
  for (const FieldDifference& field : report.fields)
    table.add({make_printable(field.field), shorten_value(field.a), shorten_value(field.b)});
  fmt::print("{}\n", table.text());
}

void print_tensors(const DiffReport& report, const DiffArguments& options) {
  if (report.tensors.empty()) return;
  Table table({"tensor", make_printable(options.a), make_printable(options.b), "different", "max abs", "max rel", "rms",
               "SNR dB"},
              {false, false, false, true, true, true, true, true});
  for (const TensorDifference& tensor : report.tensors) {
    std::vector<std::string> row = {make_printable(tensor.name), make_printable(tensor.a), make_printable(tensor.b)};
    row.resize(8);
    if (tensor.values) {
      row[3] = group_digits(tensor.values->different);
      row[4] = format_number(tensor.values->max_absolute);
      row[5] = format_number(tensor.values->max_relative);
      row[6] = format_number(tensor.values->rms);
      row[7] = format_decibels(tensor.values->signal_to_noise_db);
    }
    table.add(std::move(row));
  }
  fmt::print("{}\n", table.text());
}

// Counts tensors that differ only in their types: their numbers are equal.
std::size_t count_type_differences(const DiffReport& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.tensors, has_equal_numbers));
}

// Returns ", 2 of these equal as numbers: 0.0 and -0.0, or NaNs, have different bytes", followed by the number of
// tensors within the tolerance. Leaves out numbers that are 0.
std::string describe_inexact_equality(const DiffReport& report, const DiffOptions& options) {
  std::string text;
  if (report.equal_as_numbers > 0)
    text += fmt::format(", {} of these equal as numbers{}", report.equal_as_numbers,
                        options.values ? "" : ": 0.0 and -0.0, or NaNs, have different bytes");
  if (report.within_tolerance > 0)
    text += fmt::format(", {} of these within the tolerance of {:g}", report.within_tolerance, options.tolerance);
  return text;
}

void print_report(const DiffReport& report, const DiffArguments& options) {
  for (const Finding& warning : report.warnings) print_note(warning);
  print_fields(report, options);
  print_tensors(report, options);
  if (const std::size_t count = count_type_differences(report); count > 0)
    fmt::print("{} {} equal as numbers, in another type; --values compares numbers alone\n",
               format_count(count, "tensor"), count == 1 ? "is" : "are");
  fmt::print("{} and {} differ, {} {} equal{}\n", format_count(report.fields.size(), "field"),
             format_count(report.tensors.size(), "tensor"), format_count(report.equal_tensors, "tensor"),
             report.equal_tensors == 1 ? "is" : "are", describe_inexact_equality(report, options.diff));
}

std::string_view to_string(TensorDifference::What what) {
  switch (what) {
    case TensorDifference::What::only_in_a: return "only_in_a";
    case TensorDifference::What::only_in_b: return "only_in_b";
    case TensorDifference::What::shape: return "shape";
    case TensorDifference::What::type: return "type";
    case TensorDifference::What::values: return "values";
  }
  return {};
}

// Prints the report as docs/json.md describes it.
void print_json(const DiffReport& report) {
  JsonOutput json;
  json->begin_object();
  json->write_member("equal", report.same());
  json.write_list("fields", report.fields, [&](const FieldDifference& field) {
    json->write_value(Attributes{{"field", field.field}, {"a", field.a}, {"b", field.b}});
  });
  json.write_list("tensors", report.tensors, [&](const TensorDifference& tensor) {
    Attributes entry{{"name", tensor.name}, {"what", to_string(tensor.what)}, {"a", tensor.a}, {"b", tensor.b}};
    if (tensor.values) {
      entry.set("different", tensor.values->different);
      entry.set("max_abs", tensor.values->max_absolute);
      entry.set("rms", tensor.values->rms);
      entry.set("max_rel", tensor.values->max_relative);
      entry.set("snr_db", tensor.values->signal_to_noise_db);
      entry.set("equal_as_numbers", has_equal_numbers(tensor));
    }
    json->write_value(entry);
  });
  json->write_member("equal_tensors", report.equal_tensors);
  json->write_member("equal_as_numbers", report.equal_as_numbers);
  json->write_member("within_tolerance", report.within_tolerance);
  json.write_list("warnings", report.warnings, [&](const Finding& warning) { json->write_value(warning.message); });
  json->end_object();
  json.finish();
}

void run_diff(DiffArguments& options) {
  const Model a = open_model(options.a, options.read);
  const Model b = open_model(options.b, options.read);
  for (const Model* const model : {&a, &b}) require_same_headers(*model, get_cluster());
  options.diff.progress = make_progress(options.progress, "diff");
  const DiffReport report = diff(a, b, options.diff, get_cluster());
  options.diff.progress = {};  // the destructor of the old callback erases the bar
  if (options.json) {
    print_json(report);
  } else if (!options.progress.quiet) {
    print_report(report, options);
  }
  if (!report.same()) throw ExitCode{1};
}

}  // namespace

void add_diff_command(CLI::App& app) {
  const auto options = std::make_shared<DiffArguments>();
  CLI::App* command =
      app.add_subcommand("diff", "Compare two models: metadata, shapes, values; exit 1 when they differ");
  command->add_option("A", options->a, "Model file or directory; - is standard input")->required();
  command->add_option("B", options->b, "Model file or directory; - is standard input")->required();
  command->add_flag("--json", options->json, "Print the differences as JSON");
  add_pattern_options(*command, options->diff.only, options->diff.skip, "Compare");
  add_number_option(*command, "--tolerance", options->diff.tolerance, "Numbers that differ by at most this are equal",
                    {0.0, std::numeric_limits<double>::max()});
  command->add_flag("--values", options->diff.values,
                    "Compare names, shapes and numbers alone: metadata and types do not count");
  command->add_flag_callback(
      "--no-verify", [options] { options->diff.verify = false; }, "Trust the files: do not check their digests");
  add_progress_options(*command, options->progress, "Print nothing: the exit code is the answer");
  add_read_options(*command, options->read);
  command->callback([options] { run_diff(*options); });
}

}  // namespace poise::cli
