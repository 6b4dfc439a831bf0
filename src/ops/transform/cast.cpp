// Cast: converts elements to another floating-point type. A sparse tensor that stays sparse has its values cast.
#include "ops/transform/step.hpp"
#include "views/dense.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

class Cast final : public Step {
 public:
  explicit Cast(const Conversion& conversion) : target_(conversion.target) {}

  void apply(TensorPlan& plan) override {
    if (!plan.type || plan.type->quantized()) return;
    const DType to = plan.type->dtype;
    if (is_sparse(plan.tensor) && has_layout_for(target_, plan.tensor)) {
      const DType from = plan.tensor.require("values").dtype;
      if (from == to) return;
      plan.cast = {plan.tensor.name, from, to};
      plan.tensor = with_cast_values(std::move(plan.tensor), to);
    } else {
      plan.cast = {plan.tensor.name, element_type(plan.tensor), to};
      Tensor cast = make_dense(plan.tensor.name, plan.tensor.shape, to, dense_blob(plan.tensor, to));
      // Attributes of other layouts describe their codes.
      if (plan.tensor.layout == Layout::dense) cast.attributes = plan.tensor.attributes;
      plan.tensor = std::move(cast);
    }
  }

 private:
  const Format& target_;
};

}  // namespace

std::unique_ptr<Step> make_cast_step(const Conversion& conversion) { return std::make_unique<Cast>(conversion); }

}  // namespace poise
