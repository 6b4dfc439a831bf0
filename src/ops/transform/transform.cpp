#include "ops/transform/transform.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bytes/checked.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/reformed_for.hpp"
#include "model/card.hpp"
#include "ops/transform/step.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// In order. Each step gets the results of the steps before it.
constexpr std::array kSteps = {
    make_select_step,     make_choose_type_step,    make_rows_for_blocks_step,  make_cast_step,     make_quantize_step,
    make_fit_layout_step, make_transpose_back_step, make_keep_other_parts_step, make_sparsify_step,
};

// A running step and its warnings.
class RunningStep {
 public:
  explicit RunningStep(std::unique_ptr<Step> step) : step_(std::move(step)) {}

  void apply(TensorPlan& plan) {
    step_->apply(plan);
    for (TensorPlan::Warning& warning : plan.warnings) {
      const auto same_text = [&](const Group& group) { return group.text == warning.text; };
      auto group = std::ranges::find_if(groups_, same_text);
      if (group == groups_.end()) group = groups_.insert(group, {std::move(warning.text), {}});
      group->subjects.push_back(std::move(warning.subject));
    }
    plan.warnings.clear();
  }

  void finish(Model& made) {
    for (const Group& group : groups_) add_warning(made, group.subjects, group.text);
    step_->finish(made);
  }

 private:
  struct Group {
    std::string text;
    std::vector<std::string> subjects;
  };
  std::unique_ptr<Step> step_;
  std::vector<Group> groups_;
};

void replace_fields(Card& card, const Card& with) {
  const auto replace = [](std::string& field, const std::string& value) {
    if (!value.empty()) field = value;
  };
  replace(card.model_type, with.model_type);
  replace(card.base_model, with.base_model);
  replace(card.author, with.author);
  replace(card.created_at, with.created_at);
  replace(card.last_modified, with.last_modified);
  replace(card.license, with.license);
  replace(card.uuid, with.uuid);
}

// A configuration of an unknown family may have all keys that another family needs.
void read_config_as(Model& model, const std::string& model_type) {
  if (model.config || model.config_json.empty() || find_family(model_type) == nullptr) return;
  Attributes map = std::move(model.config_json);
  map.set("model_type", model_type);
  take_config(model, std::move(map), model.origin.path.string());
}

// Counts codes that were decoded although no other type was asked for.
void count_decoded(const TensorPlan& plan, DecodedTensors& decoded) {
  const bool is_decoded =
      !plan.type && layout_type(plan.input->layout).quantized && plan.tensor.layout == Layout::dense;
  if (!is_decoded) return;
  ++decoded.tensors;
  decoded.bytes_in = saturating_add(decoded.bytes_in, plan.input->size_bytes());
  decoded.bytes_out = saturating_add(decoded.bytes_out, plan.tensor.size_bytes());
}

// Moves the plan's results into `result`.
void collect(TensorPlan plan, Transformed& result) {
  if (plan.fate == TensorPlan::Fate::skipped) result.skipped.push_back(plan.input->name);
  if (plan.fate != TensorPlan::Fate::written) return;
  count_decoded(plan, result.decoded);
  if (plan.cast) result.casts.push_back(std::move(*plan.cast));
  if (plan.quantized) result.quantized.push_back(std::move(*plan.quantized));
  if (plan.may_become_sparse) result.perhaps_sparse.insert(plan.tensor.name);
  result.model.add(std::move(plan.tensor));
}

}  // namespace

Transformed transform(const Model& input, const Format& target, const ConvertOptions& options) {
  Transformed result;
  result.reformed = reformed_for(target, input, options.dtype || options.quantize || !options.recipe.empty());
  const Model& model = result.reformed ? result.reformed->model : input;
  result.model = Model(model.header());
  replace_fields(result.model.card, checked_card(options.card));
  read_config_as(result.model, options.card.model_type);
  const Conversion conversion{model, result.model, target, options};
  std::vector<RunningStep> steps;
  for (const MakeStep make : kSteps) steps.emplace_back(make(conversion));
  for (const Tensor& tensor : model.tensors()) {
    TensorPlan plan(tensor);
    for (RunningStep& step : steps) {
      step.apply(plan);
      if (plan.fate != TensorPlan::Fate::written) break;
    }
    collect(std::move(plan), result);
  }
  if (!options.recipe.empty() || !result.quantized.empty() || !result.casts.empty())
    result.model.origin.recipe = options.recipe;
  for (RunningStep& step : steps) step.finish(result.model);
  return result;
}

}  // namespace poise
