// Keep other parts: a dense tensor that stays dense keeps the parts besides its elements.
#include <algorithm>
#include <iterator>

#include "ops/transform/step.hpp"

namespace poise {
namespace {

class KeepOtherParts final : public Step {
 public:
  void apply(TensorPlan& plan) override {
    const Tensor& input = *plan.input;
    if (!has_other_parts(input) || has_other_parts(plan.tensor)) return;
    if (plan.tensor.layout != Layout::dense) return plan.warn(std::string(kLostParts));
    std::ranges::copy_if(input.parts, std::back_inserter(plan.tensor.parts),
                         [](const Part& part) { return part.role != "data"; });
  }
};

}  // namespace

std::unique_ptr<Step> make_keep_other_parts_step(const Conversion&) { return std::make_unique<KeepOtherParts>(); }

}  // namespace poise
