// Transpose: matrices whose blocks run along the columns of what they multiply are transposed before they become
// blocks, and the blocks are turned back.
#include "ops/transform/step.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

// Decodes codes other than blocks of columns first.
Tensor transposed_matrix(const Tensor& matrix) {
  if (blocks_along(matrix.layout) == BlocksAlong::columns) return transposed(matrix);
  const bool is_narrow = info(element_type(matrix)).bits < 8;
  return transposed(is_narrow ? make_dense(matrix.name, matrix.shape, DType::f32, dense_blob(matrix, DType::f32))
                              : make_dense_tensor(matrix));
}

class RowsForBlocks final : public Step {
 public:
  explicit RowsForBlocks(const Conversion& conversion) : conversion_(conversion) {}

  void apply(TensorPlan& plan) override {
    if (!plan.type || plan.type->blocks.empty() || !blocks_run_along_columns(conversion_, plan.tensor)) return;
    plan.tensor = transposed_matrix(plan.tensor);
    plan.is_transposed = true;
  }

 private:
  const Conversion& conversion_;
};

class TransposeBack final : public Step {
 public:
  void apply(TensorPlan& plan) override {
    if (!plan.is_transposed) return;
    plan.tensor = transposed(std::move(plan.tensor));
    plan.is_transposed = false;
  }
};

}  // namespace

std::unique_ptr<Step> make_rows_for_blocks_step(const Conversion& conversion) {
  return std::make_unique<RowsForBlocks>(conversion);
}

std::unique_ptr<Step> make_transpose_back_step(const Conversion&) { return std::make_unique<TransposeBack>(); }

}  // namespace poise
