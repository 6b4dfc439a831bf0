// Fit the layout: makes a tensor dense if the target lacks its layout.
#include "ops/transform/step.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

class FitLayout final : public Step {
 public:
  explicit FitLayout(const Conversion& conversion) : target_(conversion.target) {}

  void apply(TensorPlan& plan) override {
    if (!has_layout_for(target_, plan.tensor)) plan.tensor = make_dense_tensor(plan.tensor);
  }

 private:
  const Format& target_;
};

}  // namespace

std::unique_ptr<Step> make_fit_layout_step(const Conversion& conversion) {
  return std::make_unique<FitLayout>(conversion);
}

}  // namespace poise
