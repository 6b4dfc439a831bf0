// poise stats: prints statistics of each tensor's numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/statistics.hpp>

#include "bytes/short_text.hpp"
#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "model/same_headers.hpp"
#include "ops/ranks.hpp"

namespace poise::cli {
namespace {

// Describes a column of the table: the text of a tensor's cell, and the number by which --sort orders the tensors.
struct StatsColumn {
  std::string_view name;
  std::string (*text)(const TensorStatistics& tensor);
  double (*key)(const TensorStatistics& tensor);
  // Returns how many elements of the tensor the column counts. If all tensors have 0, the table leaves the column out.
  // Null: the table always has the column.
  std::uint64_t (*rare_count)(const TensorStatistics& tensor) = nullptr;
};

std::string format_four_digits(double number) { return std::isnan(number) ? "-" : fmt::format("{:.4g}", number); }

double compute_share(std::uint64_t count, const TensorStatistics& tensor) {
  return tensor.elements == 0 ? 0 : static_cast<double>(count) / static_cast<double>(tensor.elements);
}

std::string format_share(std::uint64_t count, const TensorStatistics& tensor) {
  const double share = 100 * compute_share(count, tensor);
  if (count == 0) return "0";
  if (share < 0.01) return "<0.01%";
  if (share >= 99.9995 && count < tensor.elements) return ">99.999%";
  return fmt::format("{:.{}f}%", share, share < 1 ? 2 : share < 99.95 || count == tensor.elements ? 1 : 3);
}

// Returns the largest rms (root mean square) of a channel, divided by the rms of the tensor; 0 for a tensor without
// channels, or with zeros only.
double compute_channel_ratio(const TensorStatistics& tensor) {
  return tensor.largest_channel && tensor.rms > 0 ? tensor.largest_channel->rms / tensor.rms : 0;
}

using TS = TensorStatistics;
constexpr std::array<StatsColumn, 11> kStatsColumns = {{
    {"min", [](const TS& t) { return format_four_digits(t.min); }, [](const TS& t) { return t.min; }},
    {"max", [](const TS& t) { return format_four_digits(t.max); }, [](const TS& t) { return t.max; }},
    {"mean", [](const TS& t) { return format_four_digits(t.mean); }, [](const TS& t) { return t.mean; }},
    {"std", [](const TS& t) { return format_four_digits(t.deviation); }, [](const TS& t) { return t.deviation; }},
    {"rms", [](const TS& t) { return format_four_digits(t.rms); }, [](const TS& t) { return t.rms; }},
    {"zeros", [](const TS& t) { return format_share(t.zeros, t); },
     [](const TS& t) { return compute_share(t.zeros, t); }},
    {"subnormals", [](const TS& t) { return format_share(t.subnormals, t); },
     [](const TS& t) { return compute_share(t.subnormals, t); }, [](const TS& t) { return t.subnormals; }},
    {"nan", [](const TS& t) { return group_digits(t.nans); }, [](const TS& t) { return static_cast<double>(t.nans); },
     [](const TS& t) { return t.nans; }},
    {"inf", [](const TS& t) { return group_digits(t.infinities); },
     [](const TS& t) { return static_cast<double>(t.infinities); }, [](const TS& t) { return t.infinities; }},
    {"outliers", [](const TS& t) { return group_digits(t.outliers); },
     [](const TS& t) { return static_cast<double>(t.outliers); }},
    {"channel",
     [](const TS& t) {
       return t.largest_channel ? fmt::format("{} ({:.1f}x)", t.largest_channel->index, compute_channel_ratio(t))
                                : std::string("-");
     },
     compute_channel_ratio},
}};

struct StatsArguments {
  std::string path;
  bool json = false;
  bool names_in_file = false;
  std::string sort;
  StatisticsOptions statistics;
  ProgressOptions progress;
  ReadOptions read;
};

// Returns a character for each count: a bar from "▁" to "█", which is the largest count, or a space for 0.
std::string draw_histogram(const Histogram& histogram) {
  constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto largest = static_cast<double>(std::max<std::uint64_t>(1, std::ranges::max(histogram.counts)));
  std::string text;
  for (const std::uint64_t count : histogram.counts)
    text += kBlocks[static_cast<std::size_t>(std::ceil(8 * static_cast<double>(count) / largest))];
  return text;
}

// Sorts tensors by name, or by a column of numbers, the largest number first; tensors without a number in that column
// come last. Keeps the order if `column` is empty.
void sort_tensors(std::vector<TensorStatistics>& tensors, std::string_view column) {
  if (column.empty()) return;
  if (column == "name") {
    std::ranges::stable_sort(tensors, {}, &TensorStatistics::name);
    return;
  }
  const auto compute_key = [&](const TensorStatistics& tensor) {
    if (column == "elements") return static_cast<double>(tensor.elements);
    const double number = std::ranges::find(kStatsColumns, column, &StatsColumn::name)->key(tensor);
    return tensor.problem.empty() && !std::isnan(number) ? number : -HUGE_VAL;
  };
  std::ranges::stable_sort(tensors, std::ranges::greater(), compute_key);
}

std::string_view find_shown_name(const Model& model, const TensorStatistics& tensor, bool in_file) {
  const Tensor* const found = in_file ? model.find(tensor.name) : nullptr;
  return found == nullptr ? std::string_view(tensor.name) : found->name_in_file();
}

void print_table(const Model& model, const std::vector<TensorStatistics>& tensors, const StatsArguments& options) {
  std::vector<const StatsColumn*> columns;
  for (const StatsColumn& column : kStatsColumns) {
    const auto has = [&](const TensorStatistics& tensor) { return column.rare_count(tensor) > 0; };
    if (column.rare_count == nullptr || std::ranges::any_of(tensors, has)) columns.push_back(&column);
  }
  Table::Row header = {"tensor", "shape", "type"};
  std::vector<bool> right_aligned = {false, false, false};
  for (const StatsColumn* column : columns) {
    header.emplace_back(column->name);
    right_aligned.push_back(true);
  }
  header.emplace_back("histogram");
  right_aligned.push_back(false);
  Total elements = 0;
  for (const TensorStatistics& tensor : tensors) elements = add_totals(elements, tensor.elements);
  Table(header, right_aligned).print(tensors.size(), [&](std::size_t index, Table::Row& row) {
    const TensorStatistics& tensor = tensors[index];
    append_printable(row[0], find_shown_name(model, tensor, options.names_in_file));
    row[1] = poise::to_string(tensor.shape);
    append_printable(row[2], tensor.type);
    for (std::size_t i = 0; i < columns.size(); ++i)
      row[3 + i] = tensor.problem.empty() ? columns[i]->text(tensor) : "-";
    if (tensor.histogram) row.back() = draw_histogram(*tensor.histogram);
  });
  fmt::print("{}, {} element{}\n", format_count(tensors.size(), "tensor"), group_digits(elements),
             elements == 1U ? "" : "s");
}

// Prints the statistics as JSON. docs/json.md describes the keys.
class StatsJson {
 public:
  void print(const Model& model, const std::vector<TensorStatistics>& tensors) {
    Total elements = 0;
    out_->begin_object();
    out_.write_list("tensors", tensors, [&](const TensorStatistics& tensor) {
      write_tensor(model, tensor);
      elements = add_totals(elements, tensor.elements);
    });
    out_->write_key("totals");
    out_->write_value(Attributes{{"tensors", tensors.size()}, {"elements", make_number_or_null(elements)}});
    out_->end_object();
    out_.finish();
  }

 private:
  void write_tensor(const Model& model, const TensorStatistics& tensor) {
    const bool has_numbers = tensor.problem.empty();
    const auto make_count = [&](std::uint64_t number) { return has_numbers ? Value(number) : Value(); };
    Attributes entry{{"name", tensor.name}};
    if (const std::string_view name = find_shown_name(model, tensor, true); name != tensor.name)
      entry.set("file_name", name);
    entry.set("shape", Value::Array(tensor.shape.begin(), tensor.shape.end()));
    entry.set("type", tensor.type);
    entry.set("elements", tensor.elements);
    entry.set("min", tensor.min);
    entry.set("max", tensor.max);
    entry.set("mean", tensor.mean);
    entry.set("std", tensor.deviation);
    entry.set("rms", tensor.rms);
    entry.set("zeros", make_count(tensor.zeros));
    entry.set("subnormals", make_count(tensor.subnormals));
    entry.set("nan", make_count(tensor.nans));
    entry.set("inf", make_count(tensor.infinities));
    entry.set("outliers", make_count(tensor.outliers));
    entry.set("largest_channel", tensor.largest_channel ? Value(Attributes{{"index", tensor.largest_channel->index},
                                                                           {"rms", tensor.largest_channel->rms}})
                                                        : Value());
    entry.set("histogram", tensor.histogram ? make_histogram_json(*tensor.histogram) : Value());
    entry.set("problem", has_numbers ? Value() : Value(tensor.problem));
    out_->write_value(entry);
  }

  static Value make_histogram_json(const Histogram& histogram) {
    return Attributes{{"low", histogram.low},
                      {"high", histogram.high},
                      {"counts", Value::Array(histogram.counts.begin(), histogram.counts.end())}};
  }

  JsonOutput out_;
};

// Prints a note if tensors have no statistics: the name of the first one, the reason, and the number of others.
void print_problem_note(const std::vector<TensorStatistics>& tensors) {
  const auto has_problem = [](const TensorStatistics& tensor) { return !tensor.problem.empty(); };
  const auto first = std::ranges::find_if(tensors, has_problem);
  if (first == tensors.end()) return;
  const auto more = std::ranges::count_if(tensors, has_problem) - 1;
  print_note({Severity::warning,
              fmt::format("tensor {} has no numbers: {}{}", first->name, first->problem,
                          more == 0 ? "" : fmt::format("; and {} more", more)),
              {},
              {}});
}

void print_statistics(StatsArguments& options) {
  const Model model = open_model(options.path, options.read);
  options.statistics.progress = make_progress(options.progress, "stats");
  require_same_headers(model, get_cluster());
  std::vector<TensorStatistics> tensors = compute_statistics(model, options.statistics, get_cluster()).tensors;
  options.statistics.progress = {};  // destroys the progress bar, which erases its line
  sort_tensors(tensors, options.sort);
  if (options.json) return StatsJson().print(model, tensors);
  print_table(model, tensors, options);
  if (!options.progress.quiet) print_problem_note(tensors);
}

}  // namespace

std::vector<std::string_view> list_statistics_columns() {
  std::vector<std::string_view> names = {"name", "elements"};
  for (const StatsColumn& column : kStatsColumns) names.push_back(column.name);
  return names;
}

void add_stats_command(CLI::App& app) {
  const auto options = std::make_shared<StatsArguments>();
  CLI::App* command =
      app.add_subcommand("stats", "Show the numbers of each tensor: extremes, mean, deviation, zeros, outliers");
  command->add_option("MODEL", options->path, "Model file or directory; - is standard input")->required();
  command->add_flag("--json", options->json, "Print the statistics as JSON");
  add_pattern_options(*command, options->statistics.only, options->statistics.skip, "Show");
  std::vector<std::pair<std::string_view, std::string>> sorts;
  for (const std::string_view column : list_statistics_columns()) sorts.emplace_back(column, column);
  add_choice_option(*command, "--sort", options->sort, sorts, "Order tensors by a column, the largest number first")
      ->type_name("COLUMN");
  add_choice_option<bool, bool>(*command, "--names", options->names_in_file, {{"file", true}, {"poise", false}},
                                "Name tensors as the file does, such as GGUF's, or as Poise does");
  add_progress_options(*command, options->progress, "No progress and no notes");
  add_read_options(*command, options->read);
  command->callback([options] { print_statistics(*options); });
}

}  // namespace poise::cli
