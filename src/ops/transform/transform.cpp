#include "ops/transform/transform.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "formats/fold.hpp"
#include "model/card.hpp"
#include "schemes/scheme.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {

bool has_layout_for(const Format& target, const Tensor& tensor) {
  return holds_layout(target, find_layout_type(tensor.layout)) || !(has_float_elements(tensor) || is_sparse(tensor));
}

bool needs_blocks_along_columns(const Conversion& conversion, const Tensor& tensor) {
  return tensor.shape.size() == 2 && holds_layout(conversion.target, layouts::blocks) && has_float_elements(tensor) &&
         !(is_sparse(tensor) && has_layout_for(conversion.target, tensor)) &&
         has_blocks_along_columns(conversion.input, tensor.name);
}

bool has_other_parts(const Tensor& tensor) { return tensor.layout == Layout::dense && tensor.parts.size() > 1; }

void refuse_pattern(std::string_view option, std::string_view pattern) {
  throw Error(ErrorKind::bad_argument, fmt::format("{}: the pattern \"{}\" matches no tensor", option, pattern));
}

void add_warning(Model& model, const std::vector<std::string>& tensors, std::string_view text) {
  if (tensors.empty()) return;
  model.warnings.push_back({Severity::warning, fmt::format("tensor {}: {}", list_names(tensors, 1), text), {}, {}});
}

void warn_of_new_faults(const Model& input, Model& made, std::string_view problem) {
  const std::vector<std::string> faults = check_consistency(made);
  if (faults.size() <= check_consistency(input).size()) return;
  made.warnings.push_back(
      {Severity::warning,
       fmt::format("the model {}, so verify fails and the file cannot be run: {}", problem, list_names(faults, 1)),
       {},
       {}});
}

namespace {

class SimpleStep final : public Step {
 public:
  explicit SimpleStep(std::function<void(TensorPlan& plan)> apply) : apply_(std::move(apply)) {}
  void apply(TensorPlan& plan) override { apply_(plan); }

 private:
  std::function<void(TensorPlan& plan)> apply_;
};

}  // namespace

std::unique_ptr<Step> make_step(std::function<void(TensorPlan& plan)> apply) {
  return std::make_unique<SimpleStep>(std::move(apply));
}

namespace {

// These are the steps in order. Each gets the results of the steps before it.
constexpr std::array kSteps = {
    make_select_step,     make_choose_type_step,    make_rows_for_blocks_step,  make_cast_step,     make_quantize_step,
    make_fit_layout_step, make_transpose_back_step, make_keep_other_parts_step, make_sparsify_step,
};

// Runs a step, and joins its warnings with the same text.
class RunningStep {
 public:
  explicit RunningStep(std::unique_ptr<Step> step) : step_(std::move(step)) {}

  void apply(TensorPlan& plan) {
    step_->apply(plan);
    for (TensorPlan::Warning& warning : plan.warnings) {
      const auto has_same_text = [&](const Group& group) { return group.text == warning.text; };
      auto group = std::ranges::find_if(groups_, has_same_text);
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
  for (const CardField& field : list_card_fields()) {
    if (const std::string& text = with.*field.text; !text.empty()) card.*field.text = text;
  }
}

// Counts codes that were decoded although no other type was asked for.
void count_decoded(const TensorPlan& plan, DecodedTensors& decoded) {
  const bool is_decoded =
      !plan.type && find_layout_type(plan.input->layout).quantized && plan.tensor.layout == Layout::dense;
  if (!is_decoded) return;
  ++decoded.tensors;
  decoded.bytes_in = saturating_add(decoded.bytes_in, plan.input->size_bytes());
  decoded.bytes_out = saturating_add(decoded.bytes_out, plan.tensor.size_bytes());
}

// Returns `merged` with the names that tensors have in `model`, which may differ from those in the input.
MergedTypes rename_types(const MergedTypes& merged, const Model& input, const Model& model) {
  MergedTypes renamed;
  const Family& family = find_family_or_llama(input);
  for (const auto& [name, type] : merged)
    renamed.emplace(model.find(name) != nullptr ? name : find_table_name(family, name), type);
  return renamed;
}

// Counts a matrix that adapters changed, by its new type. Returns true if that is the type it had before.
bool count_merged(const Tensor& tensor, const std::string& own, std::vector<MergedMatrices>& merged) {
  const std::string type = describe_stored_type(tensor);
  auto row = std::ranges::find(merged, type, &MergedMatrices::type);
  if (row == merged.end()) row = merged.insert(row, {type, 0});
  ++row->matrices;
  return type == own;
}

void add_results(TensorPlan plan, Transformed& result) {
  if (plan.is_skipped) {
    result.skipped.push_back(plan.input->name);
    return;
  }
  count_decoded(plan, result.decoded);
  if (plan.cast) result.casts.push_back(std::move(*plan.cast));
  if (plan.quantized) result.quantized.push_back(std::move(*plan.quantized));
  if (plan.may_become_sparse) result.perhaps_sparse.insert(plan.tensor.name);
  result.model.add(std::move(plan.tensor));
}

// Applies several changes to a model, one after the other.
class WeightChanges {
 public:
  explicit WeightChanges(const Model& model) : model_(model) {}

  const Model& get_model() const { return result_ ? result_->model : model_; }

  void replace_model(ConvertedWeights next) {
    if (result_) {
      std::ranges::move(result_->replaced, std::back_inserter(next.replaced));
      std::ranges::move(result_->losses, std::back_inserter(next.losses));
    }
    result_ = std::move(next);
  }

  // Replaces the model with the next one. Records tensors that the next one lacks as replaced.
  void replace_model(Model next) {
    std::vector<std::string> replaced;
    for (const Tensor& tensor : get_model().tensors()) {
      if (next.find(tensor.name) == nullptr) replaced.emplace_back(tensor.name);
    }
    replace_model(ConvertedWeights{std::move(next), std::move(replaced), {}});
  }

  void drop_quantization() {
    if (find_reversible_scheme(get_model().config_json) == nullptr) return;
    if (!result_) {
      result_ = ConvertedWeights{Model(model_.header()), {}, {}};
      for (const Tensor& tensor : model_.tensors()) result_->model.add(tensor);
    }
    if (auto loss = poise::drop_quantization(result_->model.config_json)) result_->losses.push_back(*std::move(loss));
  }

  std::optional<ConvertedWeights> release_result() && { return std::move(result_); }

 private:
  const Model& model_;
  std::optional<ConvertedWeights> result_;
};

}  // namespace

std::optional<ConvertedWeights> convert_convention(const Format& target, const Model& model, bool numbers) {
  const bool has_parts = target.weights != WeightReader::llama_cpp && !numbers;
  WeightChanges changes(model);
  if (!has_parts) {
    if (auto next = fold_remaining_parts(model)) changes.replace_model(*std::move(next));
  }
  if (auto next = convert_weights(changes.get_model(), target.weights, numbers))
    changes.replace_model(*std::move(next));
  if (target.requires_output != nullptr && target.requires_output(changes.get_model())) {
    if (auto next = store_tied_output(changes.get_model())) changes.replace_model(*std::move(next));
  }
  if (has_parts) {
    const auto is_kept = [&](const Tensor& tensor) { return holds_layout(target, find_layout_type(tensor.layout)); };
    if (auto next = split_quantized_parts(changes.get_model(), is_kept)) changes.replace_model(*std::move(next));
  } else {
    changes.drop_quantization();
  }
  return std::move(changes).release_result();
}

Transformed transform(const Model& input, const Format& target, const ConvertOptions& options,
                      const MergedTypes* merged_types, const MatrixTypes* types) {
  Transformed result;
  const bool changes_types = options.dtype || options.quantize || !options.recipe.empty() || types != nullptr;
  result.converted = convert_convention(target, input, changes_types);
  const Model& model = result.converted ? result.converted->model : input;
  result.model = Model(model.header());
  if (const std::string& type = options.card.model_type; !type.empty())
    set_model_type(result.model, type, model.origin.path.string());
  replace_fields(result.model.card, normalize_card(options.card));
  complete_card(input, target, result.model.card);
  const MergedTypes merged = merged_types == nullptr ? MergedTypes() : rename_types(*merged_types, input, model);
  const Conversion conversion{model, result.model, target, options, &merged, types};
  bool keeps_types = true;
  std::vector<RunningStep> steps;
  for (const MakeStep make : kSteps) steps.emplace_back(make(conversion));
  for (const Tensor& tensor : model.tensors()) {
    TensorPlan plan(tensor);
    for (RunningStep& step : steps) {
      step.apply(plan);
      if (plan.is_skipped) break;
    }
    if (const auto own = merged.find(tensor.name); own == merged.end()) {
      keeps_types = keeps_types && !plan.cast && !plan.quantized;
    } else if (!plan.is_skipped) {
      keeps_types = count_merged(plan.tensor, own->second, result.merged) && keeps_types;
    }
    add_results(std::move(plan), result);
  }
  if (!options.recipe.empty() || !keeps_types) result.model.origin.recipe = options.recipe;
  for (RunningStep& step : steps) step.finish(result.model);
  return result;
}

}  // namespace poise
