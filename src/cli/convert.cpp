// poise convert: one format in, another out.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>

#include "cli/commands.hpp"
#include "cli/format_names.hpp"
#include "cli/json_output.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "formats/format.hpp"
#include "model/card.hpp"
#include "ops/block_recipe.hpp"
#include "ops/option_words.hpp"
#include "views/layout_type.hpp"

namespace poise::cli {
namespace {

struct ConvertArguments {
  std::string input;
  std::string output;
  ConvertOptions convert;
  TokenizerFiles tokenizer;
  ProgressOptions progress;
  bool table = false;
  bool dry_run = false;
  bool json = false;
};

std::string decibels(const QuantizationError& error) {
  const double ratio = error.signal_to_noise_db();
  return std::isinf(ratio) ? "exact" : fmt::format("{:.1f}", ratio);
}

using Quantized = ConvertReport::Quantized;

// The tensors that became one type, together.
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

Table quantized_table(const std::string& first, const std::string& second, bool second_is_number) {
  return Table({first, second, "bytes in", "bytes out", "worst error", "rms error", "SNR dB"},
               {false, second_is_number, true, true, true, true, true});
}

void add_row(Table& table, const std::string& first, const std::string& second, const QuantizedSum& sum) {
  table.add({first, second, grouped(sum.bytes_in), grouped(sum.bytes_out), short_number(sum.error.worst),
             short_number(sum.error.rms()), decibels(sum.error)});
}

void add_row(Table& table, const Quantized& tensor) {
  QuantizedSum sum;
  sum.add(tensor);
  add_row(table, printable(tensor.tensor), to_string(tensor.type), sum);
}

// One row for each type, in order of appearance.
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
  Table table = quantized_table("type", "tensors", true);
  for (const auto& [name, sum] : types) add_row(table, name, grouped(sum.tensors), sum);
  if (types.size() > 1) add_row(table, "total", grouped(total.tensors), total);
  fmt::print("\n{}", table.text());
}

void print_tensors(std::span<const Quantized> quantized, const std::string& heading) {
  Table table = quantized_table("tensor", "type", false);
  for (const Quantized& tensor : quantized) add_row(table, tensor);
  fmt::print("\n{}{}", heading, table.text());
}

// Types, and the tensors that lost most; or all tensors.
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
  constexpr std::uint64_t kNoticeable = 4;  // a quarter of the file
  const auto& allowed = format_by_name(report.format).options.align;
  if (!allowed || report.bytes_padding < report.bytes_out / kNoticeable) return;
  const std::uint64_t align = options.align.value_or(allowed->usual);
  fmt::print(
      "  {} of these are padding, for every part begins on a multiple of {} bytes; as holes they take no room on the "
      "disk{}\n",
      human_bytes(report.bytes_padding), align,
      align > allowed->least ? fmt::format("; --align {} makes less of it", allowed->least) : "");
}

void print_notes(const std::vector<Finding>& warnings, const std::vector<std::string>& losses) {
  for (const Finding& warning : warnings) complain("note: " + printable(warning.message));
  for (const std::string& loss : losses) complain("note: " + printable(loss));
}

// Reports codes that were decoded without a request.
void print_decoded(const DecodedTensors& decoded, std::string_view format) {
  if (decoded.tensors == 0) return;
  const char* const half = format_by_name(format).holds_bf16 ? "bf16" : "f16";
  complain(fmt::format("note: the codes of {} become f32, {} become {}; --dtype {} makes half of that",
                       plural(decoded.tensors, "tensor"), human_bytes(decoded.bytes_in), human_bytes(decoded.bytes_out),
                       half));
}

void print_report(const ConvertReport& report, const ConvertArguments& options) {
  print_notes(report.warnings, report.losses);
  print_decoded(report.decoded, report.format);
  if (options.progress.quiet) return;
  const std::size_t files = report.outputs.size();
  fmt::print("{} -> {} ({}{})\n", printable(options.input), printable(report.outputs.front().string()), report.format,
             files > 1 ? fmt::format(", {} files", files) : "");
  fmt::print("  {}{}, {} in, {} out, {:.2f} s, {}\n", plural(report.tensors, "tensor"),
             report.skipped > 0 ? fmt::format(" ({} left out)", report.skipped) : "", human_bytes(report.bytes_in),
             human_bytes(report.bytes_out), report.seconds, human_rate(report.bytes_out, report.seconds));
  print_padding(report, options.convert.write);
  for (const ConvertReport::Cast& cast : report.casts) {
    fmt::print("  {} -> {}: {} values, worst absolute error {}, {} fell to zero, {} to subnormal{}\n",
               to_string(cast.from), to_string(cast.to), grouped(cast.values), short_number(cast.worst_error),
               grouped(cast.to_zero), grouped(cast.to_subnormal),
               cast.not_finite > 0 ? fmt::format(", {} not finite", grouped(cast.not_finite)) : "");
  }
  print_quantized(report.quantized, options.table);
}

// The type in which a tensor will be stored. Sparse tensors are only found when they are written.
std::string planned_type(const PlannedTensor& tensor, const ConvertOptions& options) {
  return tensor.bytes_out || !options.sparse ? tensor.to
                                             : fmt::format("{} or {}", tensor.to, to_string(*options.sparse));
}

std::string planned_bytes(std::optional<std::uint64_t> bytes) { return bytes ? grouped(*bytes) : "?"; }

std::string planned_size(const Plan& plan) {
  if (!plan.bytes_out) return "";
  return fmt::format(", {}{} out", plan.exact ? "" : "at most ", human_bytes(*plan.bytes_out));
}

void print_plan(const Plan& plan, const ConvertArguments& options) {
  print_notes(plan.warnings, plan.losses);
  print_decoded(plan.decoded, plan.format);
  fmt::print("{} -> {} ({}); dry run, nothing is written\n", printable(options.input), printable(plan.output.string()),
             plan.format);
  fmt::print("  {}{}{}\n", plural(plan.tensors.size(), "tensor"),
             plan.skipped.empty() ? "" : fmt::format(" ({} left out)", plan.skipped.size()), planned_size(plan));
  if (!plan.tensors.empty()) {
    Table table({"tensor", "shape", "from", "to", "bytes in", "bytes out"}, {false, false, false, false, true, true});
    for (const PlannedTensor& tensor : plan.tensors) {
      table.add({printable(tensor.name), to_string(tensor.shape), printable(tensor.from),
                 printable(planned_type(tensor, options.convert)), grouped(tensor.bytes_in),
                 planned_bytes(tensor.bytes_out)});
    }
    fmt::print("\n{}", table.text());
  }
  if (!plan.skipped.empty()) fmt::print("\nleft out\n");
  for (const std::string& name : plan.skipped) fmt::print("  {}\n", printable(name));
}

void print_plan_json(const Plan& plan, const ConvertArguments& options) {
  Value::Array tensors;
  for (const PlannedTensor& tensor : plan.tensors) {
    tensors.emplace_back(Attributes{{"name", tensor.name},
                                    {"shape", Value::Array(tensor.shape.begin(), tensor.shape.end())},
                                    {"from", tensor.from},
                                    {"to", planned_type(tensor, options.convert)},
                                    {"bytes_in", tensor.bytes_in},
                                    {"bytes_out", number_or_null(tensor.bytes_out)}});
  }
  Value::Array warnings;
  for (const Finding& warning : plan.warnings) warnings.emplace_back(warning.message);
  fmt::print("{}\n", to_json(Attributes{{"input", options.input},
                                        {"output", plan.output.string()},
                                        {"format", plan.format},
                                        {"bytes_out", plan.exact ? number_or_null(plan.bytes_out) : Value()},
                                        {"bytes_out_at_most", number_or_null(plan.bytes_out)},
                                        {"warnings", std::move(warnings)},
                                        {"losses", Value::Array(plan.losses.begin(), plan.losses.end())},
                                        {"decoded", Attributes{{"tensors", plan.decoded.tensors},
                                                               {"bytes_in", plan.decoded.bytes_in},
                                                               {"bytes_out", plan.decoded.bytes_out}}},
                                        {"skipped", Value::Array(plan.skipped.begin(), plan.skipped.end())},
                                        {"tensors", std::move(tensors)}},
                             2));
}

void show_plan(const ConvertArguments& options) {
  // Never destroyed, as in `inspect`: the program ends here.
  static const Plan& planned = *new Plan(plan(options.input, options.output, options.convert));
  if (options.json) {
    print_plan_json(planned, options);
  } else {
    print_plan(planned, options);
  }
}

void run_conversion(ConvertArguments& options) {
  options.convert.write.progress = make_progress(options.progress, "convert");
  const ConvertReport report = convert(options.input, options.output, options.convert);
  options.convert.write.progress = {};  // wipes the bar before the report is printed
  print_report(report, options);
}

// What the library would report with its own names of options.
void require_one_type(const ConvertOptions& options) {
  if (!options.dtype || (!options.quantize && options.recipe.empty())) return;
  throw Error(ErrorKind::bad_argument,
              "--dtype and --quantize exclude each other; --keep GLOB=DTYPE gives some tensors another type");
}

// "PATTERN=TYPE", divided at the last "=": patterns may contain others.
ConvertOptions::Keep parse_keep(const std::string& text) {
  const auto equals = text.rfind('=');
  const auto type =
      equals == std::string::npos ? std::nullopt : kept_type_from(std::string_view(text).substr(equals + 1));
  if (!type) refuse("--keep", text, "GLOB=TYPE with a type of " + kept_type_choices());
  return {text.substr(0, equals), *type};
}

void parse_quantize(const std::string& text, ConvertOptions& options) {
  if (!set_quantization(options, text)) refuse("--quantize", text, quantization_choices());
}

// The choices of --quantize: a row for each type, with its bits and the formats that hold it.
std::string quantize_types() {
  const std::string affine =
      format_names([](const Format& format) { return format.prepare && holds_layout(format, layouts::affine); });
  const std::string groups =
      format_names([](const Format& format) { return format.prepare && holds_layout(format, layouts::groups); });
  const std::string blocks =
      format_names([](const Format& format) { return format.prepare && holds_layout(format, layouts::blocks); });
  const auto bits = [](double number) { return fmt::format("{:.2f}", number); };
  Table table({"TYPE", "bits", "in", ""}, {false, true, false, false});
  for (const unsigned width : {8U, 4U}) {
    table.add({fmt::format("qint{}", width), bits(width), affine, "one scale a tensor, by its largest magnitude"});
    table.add({fmt::format("qint{}:range", width), bits(width), affine, "from its least to its largest value"});
    table.add({fmt::format("qint{}:mse", width), bits(width), affine, "of least squared error"});
  }
  for (const Groups usual : {Groups{8}, Groups{4}}) {
    constexpr double kScaleBits = 32;  // the scale and the zero point of a group
    table.add({fmt::format("group{}", usual.bits), bits(usual.bits + kScaleBits / static_cast<double>(usual.size)),
               groups, fmt::format("scale and zero point for each {} codes (--group-size)", usual.size)});
  }
  for (const BlockType& type : block_types()) {
    if (type.encode == nullptr) continue;
    table.add({std::string(type.name), bits(8.0 * static_cast<double>(type.bytes) / static_cast<double>(type.elements)),
               blocks, fmt::format("blocks of {} neighbours, as ggml has them", type.elements)});
  }
  for (const std::string_view recipe : block_recipe_names())
    table.add({std::string(recipe), "", blocks, "a type for each matrix, as llama-quantize mixes them"});
  return "Types for --quantize, with bits a weight and the formats that hold them:\n" + table.text();
}

std::uint64_t parse_group_size(const std::string& text, const std::optional<StoredType>& type) {
  if (!type || !type->grouped())
    throw CLI::ValidationError("--group-size", "only --quantize group4 and group8 have groups");
  Groups groups = type->groups;
  groups.size = number_from<std::uint64_t>(text).value_or(0);
  if (is_group_size(groups)) return groups.size;
  refuse("--group-size", text, group_size_choices(groups));
}

void add_quantize_options(CLI::App& command, ConvertOptions& options) {
  const auto set_quantize = [&options](const std::string& text) { parse_quantize(text, options); };
  auto* quantize =
      command
          .add_option_function<std::string>("--quantize", set_quantize,
                                            "Store matrices as codes of one of the types below; vectors become f32")
          ->type_name("TYPE");
  command
      .add_option_function<std::string>(
          "--group-size",
          [&options](const std::string& text) {
            options.quantize->groups.size = parse_group_size(text, options.quantize);
          },
          "Codes that share a scale; halved for rows that are not a multiple of it (default: 128)")
      ->needs(quantize)
      ->type_name("N");
  command
      .add_option("--imatrix", options.imatrix,
                  "Weigh the errors of blocks by what llama-imatrix measured (GGUF or its older format)")
      ->type_name("FILE")
      ->needs(quantize);
  const auto add_keep = [&options](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) options.keep.push_back(parse_keep(text));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--keep", add_keep, "Type for tensors whose name matches, whatever --dtype and --quantize say")
      ->type_name("GLOB=TYPE");
}

void add_sparse_options(CLI::App& command, ConvertOptions& options) {
  auto* sparse = add_choice<std::optional<Layout>, Layout>(
      command, "--sparse", options.sparse, {{"csr", Layout::sparse_csr}, {"coo", Layout::sparse_coo}},
      "Store what is mostly zeros as compressed rows (matrices) or coordinates (zt)");
  add_number(command, "--min-sparsity", options.min_sparsity, "The part of the elements that has to be zero for that",
             {0.0, 1.0})
      ->needs(sparse)
      ->type_name("0..1");
}

void add_card_options(CLI::App& command, Card& card) {
  constexpr const char* kGroup = "Card";
  const auto add = [&](const std::string& name, std::string& field, const std::string& what) {
    command.add_option(name, field, what)->check(is_text())->group(kGroup);
  };
  const auto add_date = [&](const std::string& name, std::string& field) {
    const auto set = [name, &field](const std::string& text) {
      auto day = day_of(text);
      if (!day) refuse(name, text, "a date, YYYY-MM-DD, or a timestamp that begins with one");
      field = *std::move(day);
    };
    command.add_option_function<std::string>(name, set, "YYYY-MM-DD; of a timestamp, the day")
        ->type_name("DATE")
        ->group(kGroup);
  };
  add("--model-type", card.model_type, "Architecture, such as mistral");
  add("--base-model", card.base_model, "Name of the model, such as mistralai/Mistral-7B-v0.1");
  add("--author", card.author, "Who made it");
  add_date("--created-at", card.created_at);
  add_date("--last-modified", card.last_modified);
  add("--license", card.license, "Its license");
  add("--uuid", card.uuid, "Its identifier");
}

}  // namespace

void add_convert(CLI::App& app) {
  const auto options = std::make_shared<ConvertArguments>();
  ConvertOptions& convert_options = options->convert;
  CLI::App* command = app.add_subcommand("convert", "Convert a model file or directory to another format");
  command->add_option("IN", options->input, "Model file or directory")->required();
  command->add_option("OUT,-o,--output", options->output, "File to write, or directory: a name that ends in a slash")
      ->required();
  command
      ->add_option("--to", convert_options.format,
                   "Format to write; without it, the output's extension decides, and for a directory it is huggingface")
      ->check(not_empty())
      ->type_name("FORMAT");
  add_choice<std::optional<DType>, DType>(
      *command, "--dtype", convert_options.dtype, {{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}},
      "Type for floating-point tensors; without it they stay as they are where the format can hold them");
  command->add_option("--only", convert_options.only, "Take only tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command->add_option("--skip", convert_options.skip, "Leave out tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command->add_flag_callback(
      "--no-verify", [&convert_options] { convert_options.verify = false; },
      "Trust the input: without it, its digests are compared with the bytes that are taken");
  auto* dry_run = command->add_flag("--dry-run", options->dry_run,
                                    "Say what would be written and what is lost; read headers only and write nothing");
  command->add_flag("--json", options->json, "Print that as JSON, for scripts")->needs(dry_run);
  command->add_flag("--force", convert_options.write.overwrite, "Replace an existing output");
  command
      ->add_flag("--table", options->table,
                 "Report what every quantized tensor lost, not only types and those that lost most")
      ->excludes(dry_run);
  add_quantize_options(*command, convert_options);
  command
      ->add_option("--dialect", convert_options.write.dialect,
                   "Write as another program does; alt: alt.c (metadata only)")
      ->check(not_empty())
      ->type_name("NAME");
  add_sparse_options(*command, convert_options);
  add_lora_option(*command, convert_options.lora);
  add_storage_options(*command, convert_options.write);
  add_tokenizer_options(*command, options->tokenizer);
  add_card_options(*command, convert_options.card);
  add_progress_options(*command, options->progress, "No progress and no report; notes on what is lost stay");
  add_raw_option(*command, convert_options.read);
  add_io_option(*command, convert_options.read);
  command->footer(fmt::format("{}\n{}", quantize_types(), format_list()));
  command->callback([options] {
    options->convert.vocab = options->tokenizer.vocab;
    options->convert.merges = options->tokenizer.merges;
    require_one_type(options->convert);
    options->dry_run ? show_plan(*options) : run_conversion(*options);
  });
}

}  // namespace poise::cli
