// These steps choose the tensors to write, and keep their parts besides the elements.
#include <algorithm>
#include <iterator>

#include <poise/error.hpp>

#include "ops/name_patterns.hpp"
#include "ops/transform/transform.hpp"
#include "schemes/scheme.hpp"

namespace poise {
namespace {

class Select final : public Step {
 public:
  explicit Select(const Conversion& conversion)
      : input_(conversion.input), only_("only", conversion.options.only), skip_("skip", conversion.options.skip) {}

  void apply(TensorPlan& plan) override {
    std::vector<std::string> names;
    if (!only_.empty() || !skip_.empty()) {
      names = list_pattern_names(input_.config_json, plan.input->name);
      if (plan.input->file_name) names.push_back(*plan.input->file_name);
    }
    const bool is_wanted = only_.empty() || only_.match(names);
    const bool is_unwanted = skip_.match(names);
    if (is_wanted && !is_unwanted) return;
    plan.is_skipped = true;
    has_skipped_ = true;
  }

  void finish(Model& made) override {
    only_.require_all_used();
    skip_.require_all_used();
    if (!has_skipped_) return;
    if (made.size() == 0)
      throw Error(ErrorKind::bad_argument, "skip: the patterns leave out every tensor, so there is nothing to write");
    warn_of_new_faults(input_, made, "needs tensors that are left out");
  }

 private:
  const Model& input_;
  NamePatterns only_;
  NamePatterns skip_;
  bool has_skipped_ = false;
};

}  // namespace

std::unique_ptr<Step> make_select_step(const Conversion& conversion) { return std::make_unique<Select>(conversion); }

// This step keeps parts besides the elements if a dense tensor stays dense.

std::unique_ptr<Step> make_keep_other_parts_step(const Conversion&) {
  return make_step([](TensorPlan& plan) {
    const Tensor& input = *plan.input;
    if (!has_other_parts(input) || has_other_parts(plan.tensor)) return;
    if (plan.tensor.layout != Layout::dense) return plan.warn(std::string(kLostParts));
    std::ranges::copy_if(input.parts, std::back_inserter(plan.tensor.parts),
                         [](const Part& part) { return part.role != "data"; });
  });
}

}  // namespace poise
