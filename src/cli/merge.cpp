// poise merge: makes one model from several.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/merge.hpp>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/conversion_options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/hub_cache.hpp"
#include "ops/merge/methods.hpp"

namespace poise::cli {
namespace {

struct MergeArguments : ConversionArguments {
  std::vector<std::string> models;  // the models' paths with their weights, or the path of a recipe
  MergeRecipe recipe;
  std::string base;
  std::string tokenizer_source;
};

// Parses a model's path. A number after the last colon is its weight, unless a file has the whole name.
MergeSource parse_source(const std::string& text) {
  if (text.empty()) refuse("MODEL", text, "PATH or PATH:WEIGHT");
  MergeSource source{.model = text};
  const auto colon = text.rfind(':');
  std::error_code error;
  if (colon != std::string::npos && colon != 0 && !std::filesystem::exists(text, error)) {
    if (const auto weight = parse_number_text<double>(std::string_view(text).substr(colon + 1))) {
      source.model = text.substr(0, colon);
      source.settings.emplace("weight", *weight);
    }
  }
  source.model = find_model_path(source.model.string());
  return source;
}

// Parses the value of a parameter of the merge method: "NAME=NUMBER", "NAME=true" (1) or "NAME=false" (0).
void parse_parameter(const std::string& text, MergeSettings& settings) {
  const auto equals = text.find('=');
  const std::string value = equals == std::string::npos ? "" : to_lower_ascii(text.substr(equals + 1));
  const auto number = value == "true"    ? std::optional(1.0)
                      : value == "false" ? std::optional(0.0)
                                         : parse_number_text<double>(value);
  if (!number || equals == 0) refuse("--parameter", text, "NAME=NUMBER, NAME=true or NAME=false");
  settings.insert_or_assign(text.substr(0, equals), *number);
}

double find_source_weight(const MergeSource& source) {
  const auto found = source.settings.find("weight");
  return found == source.settings.end() ? 1 : found->second.cases.front().numbers.front();
}

bool is_recipe(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

MergeRecipe read_recipe(const MergeArguments& options) {
  const auto refuse_next_to_recipe = [&](std::string_view what) {
    throw Error(ErrorKind::bad_argument, fmt::format("a recipe has its own {}", what), options.models.front());
  };
  if (options.models.size() > 1) refuse_next_to_recipe("models: name it alone");
  if (!options.recipe.method.empty()) refuse_next_to_recipe("method: leave out --method");
  if (!options.base.empty()) refuse_next_to_recipe("base: leave out --base");
  if (!options.recipe.settings.empty()) refuse_next_to_recipe("parameters: leave out --parameter");
  MergeRecipe recipe = read_merge_recipe(options.models.front());
  recipe.seed = options.recipe.seed;
  if (!options.tokenizer_source.empty() && !recipe.tokenizer_source.empty())
    refuse_next_to_recipe("tokenizer_source: leave out --tokenizer-source");
  if (!options.tokenizer_source.empty()) recipe.tokenizer_source = options.tokenizer_source;
  return recipe;
}

// Converts the weights of slerp's two models to its parameter t, the share of the second model. The base counts as the
// first one.
void convert_weights_to_t(MergeRecipe& recipe) {
  std::vector<MergeSource>& sources = recipe.slices.front().sources;
  const auto has_weight = [](const MergeSource& source) { return source.settings.contains("weight"); };
  if (to_lower_ascii(recipe.method) != "slerp" || sources.size() != 2 || std::ranges::none_of(sources, has_weight))
    return;
  if (recipe.settings.contains("t"))
    throw Error(ErrorKind::bad_argument, "slerp takes weights or t, not both: leave out one of them");
  const double sum = find_source_weight(sources[0]) + find_source_weight(sources[1]);
  if (sum == 0)
    throw Error(ErrorKind::bad_argument,
                "the weights of slerp add up to 0, so they have no shares: change the weights, or set t");
  const bool is_reversed = !recipe.base.empty() && !is_same_model(sources[0].model, recipe.base) &&
                           is_same_model(sources[1].model, recipe.base);
  recipe.settings.emplace("t", find_source_weight(sources[is_reversed ? 0 : 1]) / sum);
  for (MergeSource& source : sources) source.settings.erase("weight");
}

MergeRecipe make_recipe(const MergeArguments& options) {
  if (std::ranges::any_of(options.models, is_recipe)) return read_recipe(options);
  MergeRecipe recipe = options.recipe;
  if (recipe.method.empty())
    throw Error(ErrorKind::bad_argument,
                "--method is missing: linear, slerp, ... (poise help merge lists all); or name a recipe, a file that "
                "ends in .yaml");
  if (!options.base.empty()) recipe.base = find_model_path(options.base);
  recipe.tokenizer_source = options.tokenizer_source;
  MergeSlice& slice = recipe.slices.emplace_back();
  for (const std::string& model : options.models) slice.sources.push_back(parse_source(model));
  convert_weights_to_t(recipe);
  return recipe;
}

std::string describe_inputs(const MergeArguments& options) {
  std::string text;
  for (const std::string& model : options.models) text += (text.empty() ? "" : " + ") + model;
  return text;
}

void run_merge(MergeArguments& options) {
  const MergeRecipe recipe = make_recipe(options);
  const std::string input = describe_inputs(options);
  const std::filesystem::path output = options.writes_stream() ? "" : options.output;
  if (options.writes_stream() && options.convert.format.empty())
    throw Error(ErrorKind::bad_argument, "cannot tell the format of standard output: it has no extension")
        .with({.kind = Remedy::Kind::format});
  if (options.dry_run) {
    if (options.convert.budget) options.convert.write.progress = make_progress(options.progress, "measure");
    Plan plan = plan_merge(recipe, output, options.convert);
    options.convert.write.progress = {};  // wipes the bar before the plan is printed
    if (options.writes_stream()) plan.output = options.output;
    return options.json ? print_plan_json(plan, input, options.convert)
                        : print_plan(plan, input, options.convert, options.progress.quiet);
  }
  options.convert.write.progress = make_progress(options.progress, "merge");
  const ConvertReport report = options.writes_stream()
                                   ? write_to_standard_output(plan_merge(recipe, output, options.convert))
                                   : merge(recipe, output, options.convert);
  options.convert.write.progress = {};  // wipes the bar before the report is printed
  if (options.json) return print_report_json(report, input);
  if (options.progress.quiet) return;
  print_notes(report);
  if (!options.writes_stream()) print_conversion(report, input, options.convert, options.table);
}

std::string format_methods() {
  Table table({"METHOD", ""}, {false, false});
  for (const MergeMethodInfo& method : list_merge_methods()) {
    table.add({method.short_name.empty() ? method.name : fmt::format("{}, {}", method.name, method.short_name),
               method.description});
  }
  return "Methods (docs/merging.md has their formulas and parameters):\n" + table.text();
}

}  // namespace

void add_merge_command(CLI::App& app) {
  const auto options = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand("merge", "Merge models into one, by mergekit's methods");
  command
      ->add_option(
          "MODELS", options->models,
          "Model files or directories, each with its weight: PATH[:WEIGHT]; or a recipe of mergekit: FILE.yaml")
      ->required();
  add_text_option(*command, "--method", options->recipe.method, "METHOD", "How to merge: one of the methods below");
  add_text_option(*command, "--base", options->base, "PATH", "The model that the others were made from");
  add_parsed_list_option(*command, "-p,--parameter", "NAME=VALUE",
                         "Set a parameter of the method: density=0.5, lambda=0.8, normalize=false, t=0.3",
                         [options](const std::string& text) { parse_parameter(text, options->recipe.settings); })
      ->allow_extra_args(false);
  add_text_option(
      *command, "--tokenizer-source", options->tokenizer_source, "SOURCE",
      "Match tokens by their texts. The result has the tokenizer of the base, all tokens (union), or the tokenizer "
      "of one of the models: base, union or PATH");
  add_number_option(*command, "--seed", options->recipe.seed, "Seed of the random numbers of DARE and DELLA");
  add_conversion_options(*command, *options, "-o,--output");
  const std::string types = command->get_footer();
  command->footer(fmt::format("{}\n{}", format_methods(), types));
  command->callback([options] {
    finish_conversion_options(*options);
    run_merge(*options);
  });
}

}  // namespace poise::cli
