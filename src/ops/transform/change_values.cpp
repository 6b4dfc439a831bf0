// These steps change values and layouts: they cast, quantize, sparsify, transpose, and make dense.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/importance_matrix.hpp"
#include "ops/block_recipe.hpp"
#include "ops/transform/transform.hpp"
#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "views/affine.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/mx.hpp"
#include "views/sparse.hpp"
#include "views/strided.hpp"

namespace poise {

// This step casts elements to another floating-point type. If a tensor stays sparse, the step casts the stored values.

std::unique_ptr<Step> make_cast_step(const Conversion& conversion) {
  return make_step([&target = conversion.target](TensorPlan& plan) {
    if (!plan.type || plan.type->quantized()) return;
    const DType to = plan.type->dtype;
    if (is_sparse(plan.tensor) && has_layout_for(target, plan.tensor)) {
      const DType from = plan.tensor.require("values").dtype;
      if (from == to) return;
      plan.cast = {plan.tensor.name, from, to};
      plan.tensor = cast_values(std::move(plan.tensor), to, &plan.cast->blob);
    } else {
      plan.cast = {plan.tensor.name, find_element_type(plan.tensor), to};
      Tensor cast =
          make_dense(plan.tensor.name, plan.tensor.shape, to, make_dense_blob(plan.tensor, to, &plan.cast->blob));
      // Attributes of other layouts describe their codes.
      if (plan.tensor.layout == Layout::dense) cast.attributes = plan.tensor.attributes;
      plan.tensor = std::move(cast);
    }
  });
}

// This step quantizes elements. An importance matrix may weigh the errors.

namespace {

class Quantize final : public Step {
 public:
  explicit Quantize(const Conversion& conversion)
      : target_(conversion.target),
        model_type_(conversion.input.card.model_type),
        expects_use_(!conversion.options.budget) {
    const ConvertOptions& options = conversion.options;
    if (options.imatrix.empty()) return;
    if (options.budget && conversion.types == nullptr) return;  // all types stay
    if (options.recipe.empty() && !options.budget && !(options.quantize && !options.quantize->blocks.empty())) {
      throw Error(ErrorKind::bad_argument,
                  "an importance matrix weighs the errors of ggml's blocks, but no tensor becomes blocks");
    }
    matrix_ = std::make_unique<const ImportanceMatrix>(options.imatrix);
  }

  void apply(TensorPlan& plan) override {
    if (!plan.type || !plan.type->quantized()) return;
    if (is_sparse(plan.tensor) && has_layout_for(target_, plan.tensor)) return;
    StoredType type = *plan.type;
    const BlockType* blocks = get_block_type(type);
    LossyBlobPtr<QuantizationError> codes;
    const Importance importance = blocks != nullptr ? find_importance(plan, *blocks) : nullptr;
    Tensor quantized = blocks != nullptr ? quantize_to_blocks(plan.tensor, *blocks, importance, &codes)
                                         : quantize(plan.tensor, type, &codes);
    if (type.grouped()) type.groups.size = get_group_scheme(quantized.layout)->group_size;
    plan.quantized = {plan.tensor.name, type, plan.tensor.size_bytes(), quantized.size_bytes(), std::move(codes)};
    if (blocks != nullptr && plan.is_by_budget) {
      plan.quantized->rows = std::make_shared<const Tensor>(plan.tensor);
      plan.quantized->importance = importance;
    }
    plan.tensor = std::move(quantized);
  }

  void finish(Model& made) override {
    if (!matrix_) return;
    if (!is_used_ && !expects_use_) return;
    if (!is_used_)
      throw Error(ErrorKind::bad_argument,
                  "imatrix: it names no tensor that becomes blocks, so it belongs to another model");
    for (const auto& [key, value] : matrix_->provenance()) made.attributes.set(key, value);
  }

 private:
  // Returns the weights, or null if there are none. Throws unsupported if the type needs weights and there are none,
  // except for embedding and output matrix.
  Importance find_importance(TensorPlan& plan, const BlockType& type) {
    Importance weights = find_weights(plan);
    if (weights != nullptr || !type.needs_importance || is_embedding_or_output(plan.tensor.name)) return weights;
    const auto why = matrix_ ? "the importance matrix has none for it" : "there is no importance matrix";
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: {} needs weights of its columns, and {}; make one with measure_imatrix() or "
                            "`poise imatrix`",
                            plan.tensor.name, type.name, why))
        .with({.kind = Remedy::Kind::keep, .value = "q4_k", .tensor = plan.tensor.name});
  }

  Importance find_weights(TensorPlan& plan) {
    if (!matrix_) return nullptr;
    expects_use_ = expects_use_ || plan.is_by_budget;
    const Shape& shape = plan.tensor.shape;
    const std::size_t matrices = shape.size() == 3 ? static_cast<std::size_t>(shape.front()) : 1;
    Importance weights =
        matrix_->find_weights(plan.tensor.name, model_type_, static_cast<std::size_t>(shape.back()), matrices);
    is_used_ = is_used_ || weights != nullptr;
    if (weights == nullptr) {
      plan.warn("the importance matrix has no weights for it, so it is quantized without weights");
      return weights;
    }
    return replace_zero_matrices(plan, std::move(weights), static_cast<std::size_t>(shape.back()));
  }

  // Gives equal weights to each matrix whose weights are all zeros, because otherwise its errors would not count and
  // its codes would become zeros. Returns null if no matrix has other weights. A weight of at most 2^-100 counts as
  // zero, because its products with squares may underflow.
  static Importance replace_zero_matrices(TensorPlan& plan, Importance weights, std::size_t columns) {
    const auto has_weight = [](float weight) { return weight > 0x1p-100F; };
    if (std::ranges::none_of(*weights, has_weight)) {
      plan.warn("the importance matrix has only zeros for it, so it is quantized without weights");
      return nullptr;
    }
    auto changed = std::make_shared<std::vector<float>>(*weights);
    std::size_t zeros = 0;
    for (std::size_t begin = 0; begin + columns <= changed->size(); begin += columns) {
      const auto row = std::span(*changed).subspan(begin, columns);
      if (std::ranges::any_of(row, has_weight)) continue;
      std::ranges::fill(row, 1.0F);
      ++zeros;
    }
    if (zeros == 0) return weights;
    plan.warn(
        fmt::format("the importance matrix has only zeros for {} of its {} matrices, whose columns weigh "
                    "the same",
                    zeros, changed->size() / columns));
    return changed;
  }

  const Format& target_;
  std::string model_type_;
  std::unique_ptr<const ImportanceMatrix> matrix_;  // null: no weights
  bool expects_use_;                                // with a budget: false until a matrix becomes blocks
  bool is_used_ = false;
};

}  // namespace

std::unique_ptr<Step> make_quantize_step(const Conversion& conversion) {
  return std::make_unique<Quantize>(conversion);
}

// This step marks dense tensors that may become sparse. make_sparse() decides, because counting zeros needs the bytes.

std::unique_ptr<Step> make_sparsify_step(const Conversion& conversion) {
  const std::optional<Layout> layout = conversion.options.sparse;
  if (!layout) return make_step([](TensorPlan&) {});
  const Format& target = conversion.target;
  if (*layout != Layout::sparse_csr && *layout != Layout::sparse_coo)
    throw Error(ErrorKind::bad_argument,
                fmt::format("sparse: expected sparse_csr or sparse_coo, found {}", to_string(*layout)));
  if (!holds_layout(target, *layout == Layout::sparse_coo ? layouts::sparse_coo : layouts::sparse_csr))
    throw Error(
        ErrorKind::bad_argument,
        fmt::format("{} files hold no sparse tensors: leave out sparse, or write another format", target.info.name));
  const double least = conversion.options.min_sparsity;
  if (!(least >= 0 && least <= 1))
    throw Error(ErrorKind::bad_argument, fmt::format("min_sparsity is {}, expected a number from 0 to 1", least));
  return make_step([layout](TensorPlan& plan) {
    plan.may_become_sparse = plan.tensor.layout == Layout::dense && find_element_type(plan.tensor) != DType::unknown &&
                             may_become_sparse(plan.tensor, *layout);
  });
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

// Two steps transpose a matrix and its blocks, because blocks encode neighbours in a row. The first transposes a matrix
// that needs blocks along its columns before it is quantized, and the second transposes the blocks back.

namespace {

// Transposes a matrix. Blocks along columns stay blocks. Other codes, and numbers of less than a byte, become float32
// first.
Tensor transpose_matrix(const Tensor& matrix) {
  if (get_block_direction(matrix.layout) == BlocksAlong::columns) return transpose_view(matrix);
  const bool is_narrow = info(find_element_type(matrix)).bits < 8;
  return transpose_view(is_narrow
                            ? make_dense(matrix.name, matrix.shape, DType::f32, make_dense_blob(matrix, DType::f32))
                            : make_dense_tensor(matrix));
}

}  // namespace

std::unique_ptr<Step> make_rows_for_blocks_step(const Conversion& conversion) {
  return make_step([&conversion](TensorPlan& plan) {
    if (!plan.type || plan.type->blocks.empty() || !needs_blocks_along_columns(conversion, plan.tensor)) return;
    plan.tensor = transpose_matrix(plan.tensor);
    plan.is_transposed = true;
  });
}

std::unique_ptr<Step> make_transpose_back_step(const Conversion&) {
  return make_step([](TensorPlan& plan) {
    if (!plan.is_transposed) return;
    plan.tensor = transpose_view(std::move(plan.tensor));
    plan.is_transposed = false;
  });
}

// This step makes a tensor dense if the target lacks its layout. If the target has ggml's blocks, MXFP4 becomes blocks
// with the same codes instead.

std::unique_ptr<Step> make_fit_layout_step(const Conversion& conversion) {
  return make_step([&target = conversion.target](TensorPlan& plan) {
    if (has_layout_for(target, plan.tensor)) return;
    const bool becomes_blocks = holds_layout(target, layouts::blocks) && is_mxfp4(plan.tensor);
    plan.tensor = becomes_blocks ? convert_mxfp4_to_blocks(plan.tensor) : make_dense_tensor(plan.tensor);
  });
}

}  // namespace poise
