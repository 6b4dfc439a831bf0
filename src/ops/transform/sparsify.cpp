// Sparsify: makes dense tensors with enough zeros sparse. Counting zeros needs their bytes: the step marks candidates,
// and make_sparse() decides.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/transform/step.hpp"
#include "ops/transform/transform.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

class Sparsify final : public Step {
 public:
  explicit Sparsify(const Conversion& conversion) : layout_(conversion.options.sparse) {
    if (!layout_) return;
    const Format& target = conversion.target;
    if (*layout_ != Layout::sparse_csr && *layout_ != Layout::sparse_coo)
      throw Error(ErrorKind::bad_argument, fmt::format("{} is not a sparse layout", to_string(*layout_)));
    if (!holds_layout(target, *layout_ == Layout::sparse_coo ? layouts::sparse_coo : layouts::sparse_csr))
      throw Error(ErrorKind::bad_argument, fmt::format("{} files hold no sparse tensors", target.info.name));
    const double least = conversion.options.min_sparsity;
    if (!(least >= 0 && least <= 1)) {
      throw Error(ErrorKind::bad_argument, fmt::format("a least sparsity of {}: expected a number from 0 to 1", least));
    }
  }

  void apply(TensorPlan& plan) override {
    plan.may_become_sparse = layout_ && plan.tensor.layout == Layout::dense &&
                             element_type(plan.tensor) != DType::unknown && may_become_sparse(plan.tensor, *layout_);
  }

 private:
  std::optional<Layout> layout_;
};

}  // namespace

std::unique_ptr<Step> make_sparsify_step(const Conversion& conversion) {
  return std::make_unique<Sparsify>(conversion);
}

void make_sparse(Transformed& transformed, const ConvertOptions& options) {
  if (transformed.perhaps_sparse.empty()) return;
  Model model(transformed.model.header());
  std::vector<std::string> lost_parts;
  for (const Tensor& tensor : transformed.model.tensors()) {
    const bool is_asked = transformed.perhaps_sparse.contains(tensor.name);
    auto sparse = is_asked ? sparsify(tensor, *options.sparse, options.min_sparsity) : std::nullopt;
    if (sparse && has_other_parts(tensor)) lost_parts.push_back(tensor.name);
    model.add(sparse ? std::move(*sparse) : tensor);
  }
  add_warning(model, lost_parts, kLostParts);
  transformed.model = std::move(model);
  transformed.perhaps_sparse.clear();
}

}  // namespace poise
