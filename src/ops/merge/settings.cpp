#include "ops/merge/methods.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "io/hub_cache.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

std::string format_parameter_names(const MergeMethod& method) {
  std::string names;
  for (const MergeParameter& parameter : method.parameters)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", parameter.name);
  return names;
}

std::string describe_range(const MergeParameter& parameter) {
  if (parameter.kind == MergeParameter::Kind::flag) {
    if (parameter.most == 1) return "true or false";
    return fmt::format("false: {}", parameter.why);
  }
  const bool is_count = parameter.kind == MergeParameter::Kind::count;
  return fmt::format("{} from {} to {}", is_count ? "a whole number" : "a number", parameter.least, parameter.most);
}

// Throws bad_argument for an empty gradient, and for a number that the parameter does not allow.
void check_setting(const MergeRecipe& recipe, const MergeParameter& parameter, const MergeSetting& setting) {
  for (const MergeSetting::Case& row : setting.cases) {
    if (row.numbers.empty()) refuse_recipe(recipe, fmt::format("parameter {}: the gradient is empty", parameter.name));
    for (const double number : row.numbers) {
      const bool is_whole = parameter.kind == MergeParameter::Kind::number || std::floor(number) == number;
      if (number >= parameter.least && number <= parameter.most && is_whole) continue;
      refuse_recipe(recipe, fmt::format("parameter {}: expected {}; found {}", parameter.name,
                                        describe_range(parameter), number));
    }
  }
}

// `of_model` is true for the settings of one model, which may have only parameters with a value for each model.
void check_settings(const MergeRecipe& recipe, const MergeMethod& method, const MergeSettings& settings,
                    bool of_model = false) {
  for (const auto& [name, setting] : settings) {
    const auto found = std::ranges::find(method.parameters, name, &MergeParameter::name);
    if (found == method.parameters.end())
      refuse_recipe(recipe, fmt::format("parameter {}: {} has no such parameter; expected one of {}", shorten(name, 60),
                                        method.name, format_parameter_names(method)));
    check_setting(recipe, *found, setting);
    if (of_model && !found->of_model)
      refuse_recipe(recipe,
                    fmt::format("parameter {}: it has one value for all models of {}; move it from the model to "
                                "the parameters of the recipe or slice",
                                name, method.name));
  }
}

void check_number_of_models(const MergeRecipe& recipe, const MergeMethod& method, std::size_t count) {
  if (count >= method.least && count <= method.most) return;
  const std::string expected =
      method.least == method.most ? fmt::format("{}", method.least) : fmt::format("at least {}", method.least);
  refuse_recipe(recipe, fmt::format("{} merges {} {}{}; found {}", method.name, expected,
                                    method.least == 1 && method.most == 1 ? "model" : "models",
                                    method.base == MergeMethod::Base::required ? " besides the base" : "", count));
}

// Returns the value of a setting for a tensor; std::nullopt if no filter matches.
std::optional<double> compute_setting(const MergeSetting& setting, std::string_view tensor, double position) {
  for (const MergeSetting::Case& row : setting.cases) {
    const bool fits = row.filter.empty() || row.filter == "*" || tensor.find(row.filter) != std::string_view::npos;
    if (!fits) continue;
    const double place = position * static_cast<double>(row.numbers.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, row.numbers.size() - 1);
    const double share = place - static_cast<double>(below);
    return (1 - share) * row.numbers[below] + share * row.numbers[above];
  }
  return std::nullopt;
}

}  // namespace

void refuse_recipe(const MergeRecipe& recipe, const std::string& problem) {
  throw Error(ErrorKind::bad_argument, problem, recipe.file.string());
}

bool is_same_model(const fs::path& a, const fs::path& b) {
  if (a == b) return true;
  std::error_code error;
  return fs::equivalent(find_model_path(a.string()), find_model_path(b.string()), error);
}

MergeRecipe unify_paths(MergeRecipe recipe) {
  std::vector<fs::path> known;
  const auto unify = [&](fs::path& path) {
    const auto found = std::ranges::find_if(known, [&](const fs::path& other) { return is_same_model(other, path); });
    if (found == known.end()) {
      known.push_back(path);
    } else {
      path = *found;
    }
  };
  for (MergeSlice& slice : recipe.slices) {
    for (MergeSource& source : slice.sources) unify(source.model);
  }
  if (!recipe.base.empty()) unify(recipe.base);
  return recipe;
}

std::vector<const MergeSource*> list_inputs(const MergeRecipe& recipe, const MergeSlice& slice,
                                            const MergeMethod& method) {
  const bool skips_base = method.base == MergeMethod::Base::required || method.base == MergeMethod::Base::optional;
  std::vector<const MergeSource*> inputs;
  for (const MergeSource& source : slice.sources) {
    if (skips_base && !recipe.base.empty() && source.model == recipe.base) continue;
    inputs.push_back(&source);
  }
  if (method.base == MergeMethod::Base::first && !recipe.base.empty()) {
    std::stable_partition(inputs.begin(), inputs.end(),
                          [&](const MergeSource* source) { return source->model == recipe.base; });
  }
  return inputs;
}

void check_recipe(const MergeRecipe& recipe, const MergeMethod& method) {
  if (recipe.slices.empty()) refuse_recipe(recipe, "the recipe names no models");
  if (method.base == MergeMethod::Base::required && recipe.base.empty())
    refuse_recipe(recipe, fmt::format("{} needs the model that the others were made from: base_model", method.name));
  check_settings(recipe, method, recipe.settings);
  for (const MergeSlice& slice : recipe.slices) {
    check_settings(recipe, method, slice.settings);
    for (const MergeSource& source : slice.sources) check_settings(recipe, method, source.settings, true);
    const auto inputs = list_inputs(recipe, slice, method);
    check_number_of_models(recipe, method, inputs.size());
    if (method.base == MergeMethod::Base::first && !recipe.base.empty() && inputs.front()->model != recipe.base)
      refuse_recipe(recipe, fmt::format("base_model: expected one of the models that {} merges; found \"{}\"",
                                        method.name, recipe.base.string()));
  }
}

ParameterValues resolve_settings(const MergeRecipe& recipe, const MergeMethod& method, const MergeSlice& slice,
                                 std::string_view tensor, double position) {
  const std::vector<const MergeSource*> inputs = list_inputs(recipe, slice, method);
  ParameterValues values(method.parameters, inputs.size());
  for (std::size_t p = 0; p < method.parameters.size(); ++p) {
    const MergeParameter& parameter = method.parameters[p];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (const MergeSettings* settings : {&inputs[i]->settings, &slice.settings, &recipe.settings}) {
        const auto found = settings->find(parameter.name);
        if (found == settings->end()) continue;
        if (const auto value = compute_setting(found->second, tensor, position)) {
          values.set(p, i, parameter.kind == MergeParameter::Kind::number ? *value : std::floor(*value));
          break;
        }
      }
    }
  }
  if (method.fault != nullptr) {
    if (const std::string fault = method.fault(values); !fault.empty())
      refuse_recipe(recipe, fmt::format("tensor {}: {}", tensor, fault));
  }
  return values;
}

}  // namespace poise
