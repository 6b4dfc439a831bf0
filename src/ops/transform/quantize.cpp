// Quantize: converts elements to codes; an importance matrix may weigh the errors.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/importance_matrix.hpp"
#include "ops/transform/step.hpp"
#include "tensor/group_scheme.hpp"
#include "views/block_quantize.hpp"
#include "views/quantize.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

class Quantize final : public Step {
 public:
  explicit Quantize(const Conversion& conversion)
      : target_(conversion.target), model_type_(conversion.input.card.model_type) {
    const ConvertOptions& options = conversion.options;
    if (options.imatrix.empty()) return;
    if (options.recipe.empty() && !(options.quantize && !options.quantize->blocks.empty())) {
      throw Error(ErrorKind::bad_argument,
                  "an importance matrix weighs the errors of ggml's blocks, and the tensors are not to become any");
    }
    matrix_ = open_importance_matrix(options.imatrix);
  }

  void apply(TensorPlan& plan) override {
    if (!plan.type || !plan.type->quantized()) return;
    if (is_sparse(plan.tensor) && has_layout_for(target_, plan.tensor)) return;
    StoredType type = *plan.type;
    const BlockType* blocks = block_type(type);
    Tensor quantized =
        blocks != nullptr ? quantize_to_blocks(plan.tensor, *blocks, importance(plan)) : quantize(plan.tensor, type);
    if (type.grouped()) type.groups.size = group_scheme(quantized.layout)->group_size;
    plan.quantized = {plan.tensor.name, type, plan.tensor.size_bytes(), quantized.size_bytes()};
    plan.tensor = std::move(quantized);
  }

  void finish(Model& made) override {
    if (!matrix_) return;
    if (!is_used_)
      throw Error(ErrorKind::bad_argument,
                  "imatrix: it names no tensor that becomes blocks, so it is of another model");
    for (const auto& [key, value] : matrix_->provenance()) made.attributes.set(key, value);
  }

 private:
  Importance importance(TensorPlan& plan) {
    if (!matrix_) return nullptr;
    const Shape& shape = plan.tensor.shape;
    const std::size_t matrices = shape.size() == 3 ? static_cast<std::size_t>(shape.front()) : 1;
    Importance weights =
        matrix_->weights(plan.tensor.name, model_type_, static_cast<std::size_t>(shape.back()), matrices);
    is_used_ = is_used_ || weights != nullptr;
    if (weights == nullptr) {
      plan.warn("the importance matrix has no weights for it, so it is quantized without");
      return weights;
    }
    return without_zero_matrices(plan, std::move(weights), static_cast<std::size_t>(shape.back()));
  }

  // Where no column of a matrix weighs anything, no error counts, and all codes would be zeros. Weights so small that
  // their products with squares of numbers underflow count as zeros.
  static Importance without_zero_matrices(TensorPlan& plan, Importance weights, std::size_t columns) {
    const auto counts = [](float weight) { return weight > 0x1p-100F; };
    if (std::ranges::none_of(*weights, counts)) {
      plan.warn("the importance matrix has nothing but zeros for it, so it is quantized without");
      return nullptr;
    }
    auto changed = std::make_shared<std::vector<float>>(*weights);
    std::size_t zeros = 0;
    for (std::size_t begin = 0; begin + columns <= changed->size(); begin += columns) {
      const auto row = std::span(*changed).subspan(begin, columns);
      if (std::ranges::any_of(row, counts)) continue;
      std::ranges::fill(row, 1.0F);
      ++zeros;
    }
    if (zeros == 0) return weights;
    plan.warn(
        fmt::format("the importance matrix has nothing but zeros for {} of its {} matrices, whose columns weigh "
                    "the same",
                    zeros, changed->size() / columns));
    return changed;
  }

  const Format& target_;
  std::string model_type_;
  std::unique_ptr<const ImportanceMatrix> matrix_;  // null: no weights
  bool is_used_ = false;
};

}  // namespace

std::unique_ptr<Step> make_quantize_step(const Conversion& conversion) {
  return std::make_unique<Quantize>(conversion);
}

}  // namespace poise
