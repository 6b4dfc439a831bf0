#include "cli/commands.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "bytes/short_text.hpp"
#include "cli/text.hpp"
#include "ops/conversion.hpp"

namespace poise::cli {
namespace {

using Quantized = ConvertReport::Quantized;

// Sums the sizes and losses of the tensors that became one type.
struct QuantizedSum {
  std::size_t tensors = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  QuantizationError error;

  void add(const Quantized& tensor) {
    ++tensors;
    bytes_in += tensor.bytes_in;
    bytes_out += tensor.bytes_out;
    error.merge(tensor.error);
  }
};

Table make_quantized_table(const std::string& first, const std::string& second, bool second_is_number) {
  return Table({first, second, "bytes in", "bytes out", "worst error", "rms error", "SNR dB"},
               {false, second_is_number, true, true, true, true, true});
}

void add_row(Table& table, const std::string& first, const std::string& second, const QuantizedSum& sum) {
  table.add({first, second, group_digits(sum.bytes_in), group_digits(sum.bytes_out), format_number(sum.error.worst),
             format_number(sum.error.rms()), format_decibels(sum.error.signal_to_noise_db())});
}

void add_row(Table& table, const Quantized& tensor) {
  QuantizedSum sum;
  sum.add(tensor);
  add_row(table, make_printable(tensor.tensor), to_string(tensor.type), sum);
}

// Prints one row for each type, in order of appearance, and their total if there are several.
void print_types(const std::vector<Quantized>& quantized) {
  std::vector<std::pair<std::string, QuantizedSum>> types;
  QuantizedSum total;
  for (const Quantized& tensor : quantized) {
    const std::string name = to_string(tensor.type);
    auto found = std::ranges::find(types, name, &std::pair<std::string, QuantizedSum>::first);
    if (found == types.end()) found = types.insert(types.end(), {name, {}});
    found->second.add(tensor);
    total.add(tensor);
  }
  Table table = make_quantized_table("type", "tensors", true);
  for (const auto& [name, sum] : types) add_row(table, name, group_digits(sum.tensors), sum);
  if (types.size() > 1) add_row(table, "total", group_digits(total.tensors), total);
  fmt::print("\n{}", table.text());
}

void print_tensors(std::span<const Quantized> quantized, const std::string& heading) {
  Table table = make_quantized_table("tensor", "type", false);
  for (const Quantized& tensor : quantized) add_row(table, tensor);
  fmt::print("\n{}{}", heading, table.text());
}

// Prints the types, and the tensors with the largest loss, or all tensors if `all` is true.
void print_quantized(std::vector<Quantized> quantized, bool all) {
  constexpr std::size_t kWorst = 5;
  if (quantized.empty()) return;
  print_types(quantized);
  if (all || quantized.size() <= kWorst) return print_tensors(quantized, "");
  std::ranges::stable_sort(quantized, {}, [](const Quantized& tensor) {
    const double ratio = tensor.error.signal_to_noise_db();
    return std::isnan(ratio) ? -std::numeric_limits<double>::infinity() : ratio;
  });
  print_tensors(std::span(quantized).first(kWorst),
                fmt::format("the {} with the lowest SNR; --table lists all {}\n", kWorst, quantized.size()));
}

// Explains the padding, which may be most of a small model's file.
void print_padding(const ConvertReport& report, const WriteOptions& options) {
  constexpr std::uint64_t kNoticeable = 4;  // padding is reported if it is at least a quarter of the file
  const auto& allowed = find_format_by_name(report.format).options.align;
  if (!allowed || report.bytes_padding < report.bytes_out / kNoticeable) return;
  const std::uint64_t align = options.align.value_or(allowed->usual);
  fmt::print(
      "  {} of these are padding, because every part begins at a multiple of {} bytes; as holes they take no disk "
      "space{}\n",
      format_bytes(report.bytes_padding), align,
      align > allowed->least ? fmt::format("; --align {} needs less", allowed->least) : "");
}

void print_warnings_and_losses(const std::vector<Finding>& warnings, const std::vector<std::string>& losses) {
  for (const Finding& warning : warnings) print_note(warning);
  for (const std::string& loss : losses) print_message("note: " + make_printable(loss));
}

// Returns "224 matrices merged with adapters: 192 as q4_k, 32 as q6_k", or "291 tensors merged: ..." without adapters;
// an empty text if none is merged.
std::string describe_merged(const std::vector<MergedMatrices>& merged, const ConvertOptions& options) {
  if (merged.empty()) return "";
  std::size_t all = 0;
  std::string types;
  for (const MergedMatrices& row : merged) {
    all += row.matrices;
    types += fmt::format("{}{} as {}", types.empty() ? "" : ", ", group_digits(row.matrices), row.type);
  }
  if (options.lora.empty())
    return fmt::format("  {} merged: {}\n", all == 1 ? "1 tensor" : group_digits(all) + " tensors", types);
  return fmt::format("  {} merged with adapters: {}\n", all == 1 ? "1 matrix" : group_digits(all) + " matrices", types);
}

void print_changes(const std::vector<std::string>& changes) {
  for (const std::string& change : changes) fmt::print("  {}\n", make_printable(change));
}

// Prints a note about codes that are decoded because the format cannot hold them.
void print_decoded(const DecodedTensors& decoded, std::string_view format) {
  if (decoded.tensors == 0) return;
  const Format& target = find_format_by_name(format);
  const std::string advice =
      target.holds_half ? fmt::format("; --dtype {} halves that", target.holds_bf16 ? "bf16" : "f16") : "";
  print_message(fmt::format("note: the codes of {} become f32, {} become {}{}", format_count(decoded.tensors, "tensor"),
                            format_bytes(decoded.bytes_in), format_bytes(decoded.bytes_out), advice));
}

std::string format_planned_bytes(std::optional<std::uint64_t> bytes) { return bytes ? group_digits(*bytes) : "?"; }

// Prints the types that a budget chose, and the curve of errors over sizes.
void print_budget(const std::optional<BudgetChoice>& budget) {
  if (!budget) return;
  const char* const error = budget->tokens == 0 ? "error" : "divergence";
  Table types({"matrices", "type", "count", "bytes", error}, {false, false, true, true, true});
  for (const BudgetChoice::Row& row : budget->rows) {
    types.add({make_printable(row.name), row.type, group_digits(row.matrices), group_digits(row.bytes),
               format_number(row.error)});
  }
  Table curve({"bits per weight", "bytes", error, ""}, {true, true, true, false});
  for (const BudgetChoice::Point& point : budget->curve) {
    curve.add({fmt::format("{:.3f}", point.bits_per_weight), format_planned_bytes(point.bytes),
               format_number(point.error), point.is_chosen ? "<- chosen" : ""});
  }
  fmt::print("\n{}\n{}", types.text(), curve.text());
  if (budget->tokens > 0)
    fmt::print("\n  divergences are predictions in nats, measured on {} of the text\n",
               format_count(budget->tokens, "token"));
}

Value make_attributes(const std::optional<BudgetChoice>& budget) {
  if (!budget) return {};
  Value::Array curve;
  for (const BudgetChoice::Point& point : budget->curve) {
    curve.emplace_back(Attributes{{"bits_per_weight", point.bits_per_weight},
                                  {"bytes", make_number_or_null(point.bytes)},
                                  {"error", point.error},
                                  {"chosen", point.is_chosen}});
  }
  Value::Array types;
  for (const BudgetChoice::Row& row : budget->rows) {
    types.emplace_back(Attributes{{"name", row.name},
                                  {"type", row.type},
                                  {"matrices", row.matrices},
                                  {"bytes", row.bytes},
                                  {"error", row.error}});
  }
  return Attributes{{"curve", std::move(curve)},
                    {"types", std::move(types)},
                    {"tokens", budget->tokens == 0 ? Value() : Value(std::uint64_t{budget->tokens})}};
}

Attributes make_attributes(const DecodedTensors& decoded) {
  return {{"tensors", decoded.tensors}, {"bytes_in", decoded.bytes_in}, {"bytes_out", decoded.bytes_out}};
}

Value::Array make_attributes(const std::vector<MergedMatrices>& merged) {
  Value::Array rows;
  for (const MergedMatrices& row : merged)
    rows.emplace_back(Attributes{{"type", row.type}, {"matrices", row.matrices}});
  return rows;
}

// Returns the type in which a tensor will be stored. Only writing shows which tensors become sparse.
std::string describe_planned_type(const PlannedTensor& tensor, const ConvertOptions& options) {
  return tensor.bytes_out || !options.sparse ? tensor.to
                                             : fmt::format("{} or {}", tensor.to, to_string(*options.sparse));
}

std::string describe_planned_size(const Plan& plan) {
  if (!plan.bytes_out) return "";
  return fmt::format(", {}{} out", plan.exact ? "" : "at most ", format_bytes(*plan.bytes_out));
}

}  // namespace

void print_notes(const ConvertReport& report) {
  print_warnings_and_losses(report.warnings, report.losses);
  print_decoded(report.decoded, report.format);
}

void print_conversion(const ConvertReport& report, const std::string& input, const ConvertOptions& options,
                      bool all_tensors) {
  const std::size_t files = report.outputs.size();
  fmt::print("{} -> {} ({}{})\n", make_printable(input), make_printable(report.outputs.front().string()), report.format,
             files > 1 ? fmt::format(", {} files", files) : "");
  fmt::print("  {}{}, {} in, {} out, {:.2f} s, {}\n", format_count(report.tensors, "tensor"),
             report.skipped > 0 ? fmt::format(" ({} left out)", report.skipped) : "", format_bytes(report.bytes_in),
             format_bytes(report.bytes_out), report.seconds, format_rate(report.bytes_out, report.seconds));
  print_padding(report, options.write);
  print_changes(report.changes);
  fmt::print("{}", describe_merged(report.merged, options));
  for (const ConvertReport::Cast& cast : report.casts) {
    fmt::print("  {} -> {}: {} values, worst absolute error {}, {} fell to zero, {} to subnormal{}\n",
               to_string(cast.from), to_string(cast.to), group_digits(cast.values), format_number(cast.worst_error),
               group_digits(cast.to_zero), group_digits(cast.to_subnormal),
               cast.not_finite > 0 ? fmt::format(", {} not finite", group_digits(cast.not_finite)) : "");
  }
  print_budget(report.budget);
  print_quantized(report.quantized, all_tensors);
}

void print_plan(const Plan& plan, const std::string& input, const ConvertOptions& options, bool quiet) {
  if (!quiet) {
    print_warnings_and_losses(plan.warnings, plan.losses);
    print_decoded(plan.decoded, plan.format);
  }
  fmt::print("{} -> {} ({}); dry run, nothing is written\n", make_printable(input),
             make_printable(plan.output.string()), plan.format);
  fmt::print("  {}{}{}\n", format_count(plan.tensors.size(), "tensor"),
             plan.skipped.empty() ? "" : fmt::format(" ({} left out)", plan.skipped.size()),
             describe_planned_size(plan));
  print_changes(plan.changes);
  fmt::print("{}", describe_merged(plan.merged, options));
  print_budget(plan.budget);
  if (!plan.tensors.empty()) {
    Table table({"tensor", "shape", "from", "to", "bytes in", "bytes out"}, {false, false, false, false, true, true});
    for (const PlannedTensor& tensor : plan.tensors) {
      table.add({make_printable(tensor.name), to_string(tensor.shape), make_printable(tensor.from),
                 make_printable(describe_planned_type(tensor, options)), group_digits(tensor.bytes_in),
                 format_planned_bytes(tensor.bytes_out)});
    }
    fmt::print("\n{}", table.text());
  }
  if (!plan.skipped.empty()) fmt::print("\nleft out\n");
  for (const std::string& name : plan.skipped) fmt::print("  {}\n", make_printable(name));
}

void print_plan_json(const Plan& plan, const std::string& input, const ConvertOptions& options) {
  Value::Array tensors;
  for (const PlannedTensor& tensor : plan.tensors) {
    tensors.emplace_back(Attributes{{"name", tensor.name},
                                    {"shape", Value::Array(tensor.shape.begin(), tensor.shape.end())},
                                    {"from", tensor.from},
                                    {"to", describe_planned_type(tensor, options)},
                                    {"bytes_in", tensor.bytes_in},
                                    {"bytes_out", make_number_or_null(tensor.bytes_out)}});
  }
  fmt::print("{}\n", to_json(Attributes{{"input", input},
                                        {"output", plan.output.string()},
                                        {"format", plan.format},
                                        {"bytes_out", plan.exact ? make_number_or_null(plan.bytes_out) : Value()},
                                        {"bytes_out_at_most", make_number_or_null(plan.bytes_out)},
                                        {"warnings", list_messages(plan.warnings)},
                                        {"losses", Value::Array(plan.losses.begin(), plan.losses.end())},
                                        {"changes", Value::Array(plan.changes.begin(), plan.changes.end())},
                                        {"decoded", make_attributes(plan.decoded)},
                                        {"merged", make_attributes(plan.merged)},
                                        {"budget", make_attributes(plan.budget)},
                                        {"skipped", Value::Array(plan.skipped.begin(), plan.skipped.end())},
                                        {"tensors", std::move(tensors)}},
                             2));
}

void print_report_json(const ConvertReport& report, const std::string& input) {
  Value::Array quantized;
  for (const Quantized& tensor : report.quantized) {
    quantized.emplace_back(Attributes{{"name", tensor.tensor},
                                      {"type", to_string(tensor.type)},
                                      {"bytes_in", tensor.bytes_in},
                                      {"bytes_out", tensor.bytes_out},
                                      {"worst_error", tensor.error.worst},
                                      {"rms_error", tensor.error.rms()},
                                      {"snr_db", tensor.error.signal_to_noise_db()}});
  }
  fmt::print("{}\n", to_json(Attributes{{"input", input},
                                        {"outputs", list_outputs(report)},
                                        {"format", report.format},
                                        {"tensors", report.tensors},
                                        {"skipped", report.skipped},
                                        {"bytes_in", report.bytes_in},
                                        {"bytes_out", report.bytes_out},
                                        {"bytes_padding", report.bytes_padding},
                                        {"seconds", report.seconds},
                                        {"warnings", list_messages(report.warnings)},
                                        {"losses", Value::Array(report.losses.begin(), report.losses.end())},
                                        {"changes", Value::Array(report.changes.begin(), report.changes.end())},
                                        {"decoded", make_attributes(report.decoded)},
                                        {"merged", make_attributes(report.merged)},
                                        {"budget", make_attributes(report.budget)},
                                        {"casts", list_casts(report)},
                                        {"quantized", std::move(quantized)}},
                             2));
}

}  // namespace poise::cli
