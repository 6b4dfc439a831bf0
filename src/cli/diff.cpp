// poise diff: what differs between two models, across formats. Exit 0 when nothing does, else 1.
#include <memory>

#include <fmt/format.h>

#include <poise/diff.hpp>
#include <poise/format.hpp>

#include "bytes/short_text.hpp"
#include "cli/commands.hpp"
#include "cli/json_output.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

struct DiffArguments {
  std::string a;
  std::string b;
  ReadOptions read;
  ProgressOptions progress;
  bool json = false;
  bool verify = true;
};

std::string shown(const std::string& value) {
  constexpr std::size_t kLongest = 60;
  return printable(shortened(value, kLongest));
}

void print_fields(const DiffReport& report, const DiffArguments& options) {
  if (report.fields.empty()) return;
  Table table({"field", printable(options.a), printable(options.b)}, {false, false, false});
  for (const FieldDifference& field : report.fields)
    table.add({printable(field.field), shown(field.a), shown(field.b)});
  fmt::print("{}\n", table.text());
}

void print_tensors(const DiffReport& report, const DiffArguments& options) {
  if (report.tensors.empty()) return;
  Table table({"tensor", printable(options.a), printable(options.b), "different", "max abs", "rms"},
              {false, false, false, true, true, true});
  for (const TensorDifference& tensor : report.tensors) {
    std::vector<std::string> row = {printable(tensor.name), printable(tensor.a), printable(tensor.b), "", "", ""};
    if (tensor.values) {
      row[3] = grouped(tensor.values->different);
      row[4] = short_number(tensor.values->max_absolute);
      row[5] = short_number(tensor.values->rms);
    }
    table.add(std::move(row));
  }
  fmt::print("{}\n", table.text());
}

void print_report(const DiffReport& report, const DiffArguments& options) {
  for (const Finding& warning : report.warnings) note(warning);
  print_fields(report, options);
  print_tensors(report, options);
  fmt::print("{} and {} differ, {} {} equal{}\n", plural(report.fields.size(), "field"),
             plural(report.tensors.size(), "tensor"), plural(report.equal_tensors, "tensor"),
             report.equal_tensors == 1 ? "is" : "are",
             report.equal_as_numbers > 0
                 ? fmt::format(", {} of these equal as numbers: 0.0 and -0.0, or NaNs, have different bytes",
                               report.equal_as_numbers)
                 : "");
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

// See docs/json.md.
void print_json(const DiffReport& report) {
  JsonOutput json;
  json->begin_object();
  json->member("equal", report.same());
  json->key("fields");
  json->begin_array();
  for (const FieldDifference& field : report.fields) {
    json->value(Attributes{{"field", field.field}, {"a", field.a}, {"b", field.b}});
    json.flush();
  }
  json->end_array();
  json->key("tensors");
  json->begin_array();
  for (const TensorDifference& tensor : report.tensors) {
    Attributes entry{{"name", tensor.name}, {"what", to_string(tensor.what)}, {"a", tensor.a}, {"b", tensor.b}};
    if (tensor.values) {
      entry.set("different", tensor.values->different);
      entry.set("max_abs", tensor.values->max_absolute);
      entry.set("rms", tensor.values->rms);
    }
    json->value(entry);
    json.flush();
  }
  json->end_array();
  json->member("equal_tensors", report.equal_tensors);
  json->member("equal_as_numbers", report.equal_as_numbers);
  json->key("warnings");
  json->begin_array();
  for (const Finding& warning : report.warnings) json->value(warning.message);
  json->end_array();
  json->end_object();
  json.finish();
}

void compare(const DiffArguments& options) {
  const Model a = open(options.a, options.read);
  const Model b = open(options.b, options.read);
  const DiffReport report = diff(a, b, make_progress(options.progress, "diff"), options.verify);
  if (options.json) {
    print_json(report);
  } else if (!options.progress.quiet) {
    print_report(report, options);
  }
  if (!report.same()) throw ExitCode{1};
}

}  // namespace

void add_diff(CLI::App& app) {
  const auto options = std::make_shared<DiffArguments>();
  CLI::App* command =
      app.add_subcommand("diff", "Compare two models: metadata, shapes, values; exit 1 when they differ");
  command->add_option("A", options->a, "Model file or directory")->required();
  command->add_option("B", options->b, "Model file or directory")->required();
  command->add_flag("--json", options->json, "What differs as JSON, for scripts");
  command->add_flag_callback(
      "--no-verify", [options] { options->verify = false; },
      "Trust the files: without it, their digests are compared with the bytes that are compared");
  add_progress_options(*command, options->progress, "Print nothing: the exit code is the answer");
  add_raw_option(*command, options->read);
  add_io_option(*command, options->read);
  command->callback([options] { compare(*options); });
}

}  // namespace poise::cli
