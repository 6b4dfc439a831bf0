// poise convert: one format in, another out.
#include <map>
#include <memory>

#include <fmt/format.h>

#include <poise/convert.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  ConvertOptions convert;
};

void print_report(const ConvertReport& report, const Options& options) {
  for (const Warning& warning : report.warnings) fmt::print(stderr, "poise: note: {}\n", printable(warning.message));
  for (const std::string& loss : report.losses) fmt::print(stderr, "poise: note: {}\n", printable(loss));
  fmt::print("{} -> {} ({})\n", printable(options.input), printable(options.output), report.format);
  fmt::print("  {} tensors{}, {} in, {} out, {:.2f} s, {}\n", report.tensors, report.skipped > 0 ? fmt::format(" ({} left out)", report.skipped) : "",
             human_bytes(report.bytes_in), human_bytes(report.bytes_out), report.seconds, human_rate(report.bytes_out, report.seconds));
  for (const ConvertReport::Cast& cast : report.casts) {
    fmt::print("  {} -> {}: {} values, worst absolute error {:.3g}, {} fell to zero, {} to subnormal\n", to_string(cast.from), to_string(cast.to),
               grouped(cast.values), cast.worst_error, grouped(cast.to_zero), grouped(cast.to_subnormal));
  }
}

void add_card_options(CLI::App& command, Card& card) {
  const auto add = [&](const std::string& name, std::string& field, const std::string& what) { command.add_option(name, field, what)->group("Card"); };
  add("--model-type", card.model_type, "Architecture, such as mistral");
  add("--base-model", card.base_model, "Name of the model, such as mistralai/Mistral-7B-v0.1");
  add("--author", card.author, "Who made it");
  add("--created-at", card.created_at, "YYYY-MM-DD");
  add("--last-modified", card.last_modified, "YYYY-MM-DD");
  add("--license", card.license, "Its license");
  add("--uuid", card.uuid, "Its identifier");
}

}  // namespace

void add_convert(CLI::App& app) {
  static const std::map<std::string, DType> kDTypes{{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};
  const auto options = std::make_shared<Options>();
  ConvertOptions& convert_options = options->convert;
  CLI::App* command = app.add_subcommand("convert", "Convert a model file or directory to another format");
  command->add_option("IN", options->input, "Model file or directory")->required();
  command->add_option("-o,--output", options->output, "File to write")->required();
  command->add_option("--to", convert_options.format, "Format to write; without it, the output's extension decides")->type_name("FORMAT");
  command->add_option("--dtype", convert_options.dtype, "Type for floating-point tensors; without it they stay as they are where the format can hold them")
      ->transform(CLI::CheckedTransformer(kDTypes).description(""))
      ->type_name("f32|f16|bf16");
  command->add_option("--only", convert_options.only, "Take only tensors whose name matches")->type_name("GLOB");
  command->add_option("--skip", convert_options.skip, "Leave out tensors whose name matches")->type_name("GLOB");
  command->add_flag("--force", convert_options.write.overwrite, "Replace an existing output");
  add_card_options(*command, convert_options.card);
  add_io_option(*command, convert_options.read);
  command->callback([options] {
    options->convert.write.progress = terminal_progress("convert");
    const ConvertReport report = convert(options->input, options->output, options->convert);
    options->convert.write.progress = {};  // wipes the bar before the report is printed
    print_report(report, *options);
  });
}

}  // namespace poise::cli
