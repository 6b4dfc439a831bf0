// poise convert: writes a model in another format.
#include <memory>
#include <string>
#include <string_view>

#include <poise/error.hpp>

#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/conversion_options.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "ops/ranks.hpp"

namespace poise::cli {
namespace {

struct ConvertArguments : ConversionArguments {
  std::string input;
  TokenizerPaths tokenizer;
};

// Returns the format to write. Throws bad_argument if neither --to nor the output's name gives it.
std::string_view find_target_format(const ConvertArguments& options) {
  if (!options.convert.format.empty()) return find_format_by_name(options.convert.format).info.name;
  if (options.writes_stream())
    throw Error(ErrorKind::bad_argument, "cannot tell the format of standard output: it has no extension")
        .with({.kind = Remedy::Kind::format});
  return find_output_format(options.output).info.name;
}

// Plans a conversion from a stream or URL, or to a stream. The library's convert() takes paths only.
struct StreamConversion {
  explicit StreamConversion(const ConvertArguments& options)
      : format(find_target_format(options)),
        model(open_model(options.input, options.convert.read)),
        plan(poise::plan(model, format, options.convert)) {
    plan.output = options.output;
  }

  std::string format;
  Model model;  // the plan refers to it
  Plan plan;
};

void show_plan(ConvertArguments& options) {
  if (options.convert.budget) options.convert.write.progress = make_progress(options.progress, "measure");
  // The plan is never destroyed: freeing many tensors takes time, and the program ends here.
  const bool has_stream = is_stream_or_url(options.input) || options.writes_stream();
  static const Plan& planned = has_stream ? (new StreamConversion(options))->plan
                                          : *new Plan(plan(options.input, options.output, options.convert));
  options.convert.write.progress = {};  // wipes the bar before the plan is printed
  if (options.json) {
    print_plan_json(planned, options.input, options.convert);
  } else {
    print_plan(planned, options.input, options.convert, options.progress.quiet);
  }
}

ConvertReport convert_stream(const ConvertArguments& options) {
  const StreamConversion conversion(options);
  return options.writes_stream() ? write_to_standard_output(conversion.plan) : write(conversion.plan, options.output);
}

void run_conversion(ConvertArguments& options) {
  if (options.writes_stream()) require_one_rank("standard output for the model");
  if (is_stream_or_url(options.input)) require_one_rank("a model from a pipe or a server");
  options.convert.write.progress = make_progress(options.progress, "convert");
  const ConvertReport report = is_stream_or_url(options.input) || options.writes_stream()
                                   ? convert_stream(options)
                                   : convert(options.input, options.output, options.convert, get_cluster());
  options.convert.write.progress = {};  // wipes the bar before the report is printed
  if (options.json) return print_report_json(report, options.input);
  const bool quiet = options.progress.quiet;
  if (!quiet) print_notes(report);
  if (!quiet && !options.writes_stream()) print_conversion(report, options.input, options.convert, options.table);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  const auto options = std::make_shared<ConvertArguments>();
  CLI::App* command = app.add_subcommand("convert", "Convert a model file or directory to another format");
  command->add_option("IN", options->input, "Model file or directory; - is standard input")->required();
  add_conversion_options(*command, *options, "OUT,-o,--output");
  command
      ->add_option("--delta", options->convert.delta,
                   "Apply a delta to IN, the base that it was made from (poise delta), before anything else")
      ->type_name("FILE");
  add_lora_option(*command, options->convert.lora);
  add_tokenizer_options(*command, options->tokenizer);
  command->callback([options] {
    options->convert.vocab = options->tokenizer.vocab;
    options->convert.merges = options->tokenizer.merges;
    finish_conversion_options(*options);
    options->dry_run ? show_plan(*options) : run_conversion(*options);
  });
}

}  // namespace poise::cli
