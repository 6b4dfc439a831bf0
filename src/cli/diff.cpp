// poise diff: what differs between two models, across formats. Exit 0 when nothing does, else 1.
#include <memory>

#include <fmt/format.h>

#include <poise/diff.hpp>
#include <poise/format.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  ReadOptions read;
  bool verify = true;
};

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  return printable(text.size() > kLongest ? text.substr(0, kLongest) + "..." : text);
}

void print_fields(const DiffReport& report, const Options& options) {
  if (report.fields.empty()) return;
  Table table({"field", options.a, options.b}, {false, false, false});
  for (const FieldDifference& field : report.fields)
    table.add({printable(field.field), shortened(field.a), shortened(field.b)});
  fmt::print("{}\n", table.text());
}

void print_tensors(const DiffReport& report, const Options& options) {
  if (report.tensors.empty()) return;
  Table table({"tensor", options.a, options.b, "different", "max abs", "rms"}, {false, false, false, true, true, true});
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

void print_differences(const Options& options) {
  const Model a = open(options.a, options.read);
  const Model b = open(options.b, options.read);
  const DiffReport report = diff(a, b, terminal_progress("diff"), options.verify);
  for (const Finding& warning : report.warnings) complain("note: " + printable(warning.message));
  print_fields(report, options);
  print_tensors(report, options);
  fmt::print("{} and {} differ, {} {} equal\n", plural(report.fields.size(), "field"),
             plural(report.tensors.size(), "tensor"), plural(report.equal_tensors, "tensor"),
             report.equal_tensors == 1 ? "is" : "are");
  if (!report.same()) throw ExitCode{1};
}

}  // namespace

void add_diff(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("diff", "Compare two models: metadata, shapes, values; exit 1 when they differ");
  command->add_option("A", options->a, "Model file or directory")->required();
  command->add_option("B", options->b, "Model file or directory")->required();
  command->add_flag_callback(
      "--no-verify", [options] { options->verify = false; },
      "Trust the files: without it, their digests are compared with the bytes that are compared");
  add_io_option(*command, options->read);
  command->callback([options] { print_differences(*options); });
}

}  // namespace poise::cli
