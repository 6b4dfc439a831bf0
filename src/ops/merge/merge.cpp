#include <poise/merge.hpp>

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/conversion.hpp"
#include "ops/merge/methods.hpp"

namespace poise {
namespace {

// Returns the options with the recipe's type, if they ask for no other one. Throws bad_argument for options that merges
// do not support.
ConvertOptions complete_options(const MergeRecipe& recipe, ConvertOptions options) {
  const auto refuse = [](std::string_view option) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("{}: merges do not support this option; convert the result, or an input, with it", option));
  };
  if (!options.delta.empty()) refuse("delta");
  if (!options.lora.empty()) refuse("lora");
  if (!options.vocab.empty()) refuse("vocab");
  if (!options.merges.empty()) refuse("merges");
  const bool has_type = options.dtype || options.quantize || !options.recipe.empty() || options.budget;
  if (!has_type) options.dtype = recipe.dtype;
  return options;
}

Plan plan_merge(const MergeRecipe& recipe, const std::filesystem::path& output, const ConvertOptions& options,
                bool describes) {
  const Format& target = choose_target_format(output, options);
  MergedModels models = merge_models(recipe, options.read);
  return plan_conversion(
      {.merged = std::move(models.merged),
       .opened = std::move(models.inputs),
       .is_used = [used = std::move(models.used)](const Tensor& tensor) { return used.contains(&tensor); }},
      output, target, options, describes);
}

}  // namespace

std::vector<MergeMethodInfo> list_merge_methods() {
  std::vector<MergeMethodInfo> rows;
  for (const MergeMethod& method : get_merge_methods())
    rows.push_back({std::string(method.name), std::string(method.short_name), std::string(method.description)});
  return rows;
}

Plan plan_merge(const MergeRecipe& recipe, const std::filesystem::path& output, const ConvertOptions& options) {
  return plan_merge(recipe, output, complete_options(recipe, options), true);
}

ConvertReport merge(const MergeRecipe& recipe, const std::filesystem::path& output, const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  return carry_out(plan_merge(recipe, output, complete_options(recipe, options), false), nullptr, output, start);
}

}  // namespace poise
