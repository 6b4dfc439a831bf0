// A step is a change that a conversion makes to each tensor, based on headers alone.
//
// transform.cpp has the list, in order. A new step is one file in this folder, its line among the declarations below,
// and its row in the list.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <poise/convert.hpp>

#include "family/family.hpp"
#include "formats/format.hpp"
#include "numeric/cast_kernels.hpp"
#include "ops/lora.hpp"
#include "views/affine.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Holds the types that a budget (ConvertOptions::budget) gives to matrices of floating-point numbers. Vectors, and
// matrices that never become blocks, become f32, as in any quantization.
struct MatrixTypes {
  // Maps names in the convention of the target's readers to types; std::nullopt: the matrix keeps its type.
  std::unordered_map<std::string, std::optional<StoredType>> chosen = {};
  std::optional<StoredType> others = {};  // for matrices that `chosen` does not list
  bool encodes_again = false;             // true if a matrix that already has its type gets new codes, too
};

// Describes the whole conversion, as steps see it.
struct Conversion {
  const Model& input;      // the input, with weights in the form that the target's readers need
  const Model& described;  // the card, configuration and attributes to be written; its tensors are incomplete
  const Format& target;
  const ConvertOptions& options;
  const MergedTypes* merged = nullptr;  // the types of the input's tensors that adapters changed; null: none
  const MatrixTypes* types = nullptr;   // the types of a budget; null: there is none, or all types stay
};

// Names a tensor that is cast, or whose values are cast.
struct CastTensor {
  std::string name;
  DType from;
  DType to;
  LossyBlobPtr<CastStats> blob = nullptr;  // the blob of the part that is cast; null: its numbers are of type `to`
};

struct QuantizedTensor {
  std::string name;
  StoredType type;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  LossyBlobPtr<QuantizationError> codes = nullptr;  // the blob of the part with the codes
  // If a budget chose the blocks, the matrix whose rows became blocks, and the weights of its columns (null: none), as
  // in quantize_to_blocks(). Null for other codes.
  std::shared_ptr<const Tensor> rows = nullptr;
  Importance importance = nullptr;
};

// Holds one tensor on its way through the steps.
struct TensorPlan {
  // Tensors with the same text share one warning: "tensor a and 2 more: text".
  struct Warning {
    std::string subject;
    std::string text;
  };

  explicit TensorPlan(const Tensor& original) : input(&original), tensor(original) {}

  void warn(std::string text) { warnings.push_back({tensor.name, std::move(text)}); }

  const Tensor* input;
  Tensor tensor;                   // the result of the steps so far; lazy
  bool is_skipped = false;         // true if `only` or `skip` leave it out
  std::optional<StoredType> type;  // the type for its elements; std::nullopt: unchanged
  bool is_by_budget = false;       // true if `type` is from MatrixTypes
  bool is_transposed = false;      // `tensor` has the rows of the input as columns
  bool may_become_sparse = false;  // make_sparse() counts its zeros
  std::optional<CastTensor> cast;
  std::optional<QuantizedTensor> quantized;
  std::vector<Warning> warnings;
};

class Step {
 public:
  virtual ~Step() = default;
  // Changes a plan. It is called in the model's order for each tensor that earlier steps have not dropped.
  virtual void apply(TensorPlan& plan) = 0;
  // Ends the step, after the last tensor. `made` has all tensors, and the warnings of the steps so far. Throws
  // bad_argument when an option had no effect.
  virtual void finish(Model& /*made*/) {}
};

// Makes a step that only changes plans. Requires: everything that `apply` refers to outlives the step.
std::unique_ptr<Step> make_step(std::function<void(TensorPlan& plan)> apply);

// Makes a step. Throws bad_argument for options that contradict each other or that the target does not support.
// Requires: `conversion` and what it refers to outlive the step.
using MakeStep = std::unique_ptr<Step> (*)(const Conversion& conversion);

std::unique_ptr<Step> make_select_step(const Conversion& conversion);            // only, skip
std::unique_ptr<Step> make_choose_type_step(const Conversion& conversion);       // dtype, quantize, ..., keep
std::unique_ptr<Step> make_rows_for_blocks_step(const Conversion& conversion);   // transposes if blocks need it
std::unique_ptr<Step> make_cast_step(const Conversion& conversion);              // casts to another floating-point type
std::unique_ptr<Step> make_quantize_step(const Conversion& conversion);          // replaces numbers with codes
std::unique_ptr<Step> make_fit_layout_step(const Conversion& conversion);        // replaces layouts the target lacks
std::unique_ptr<Step> make_transpose_back_step(const Conversion& conversion);    // undoes make_rows_for_blocks_step
std::unique_ptr<Step> make_keep_other_parts_step(const Conversion& conversion);  // keeps parts besides the elements
std::unique_ptr<Step> make_sparsify_step(const Conversion& conversion);          // sparse, min_sparsity

// Returns true if the target's files can hold the tensor's layout. Also returns true for layouts that Poise cannot make
// dense; the writer may reject these.
bool has_layout_for(const Format& target, const Tensor& tensor);

// Returns true when blocks of the matrix would run along its columns.
bool needs_blocks_along_columns(const Conversion& conversion, const Tensor& tensor);

// Returns true when a dense tensor has parts besides its elements.
bool has_other_parts(const Tensor& tensor);

// Throws bad_argument naming the option and a pattern that matches no tensor.
[[noreturn]] void refuse_pattern(std::string_view option, std::string_view pattern);

// Adds one warning about all these tensors, if there are any.
void add_warning(Model& model, const std::vector<std::string>& tensors, std::string_view text);

// Adds one warning, "the model PROBLEM, so ...: FAULT and 3 more", if more of the family's rules are broken in `made`
// than in `input`.
void warn_of_new_faults(const Model& input, Model& made, std::string_view problem);

inline constexpr std::string_view kLostParts = "its parts besides data are lost, because it becomes dense";

struct Transformed {
  Model model;
  std::optional<ConvertedWeights> converted;       // set if the weights have another form than in the input
  std::vector<std::string> skipped;                // names of tensors that are left out
  std::unordered_set<std::string> perhaps_sparse;  // dense tensors whose zeros make_sparse() counts
  std::vector<CastTensor> casts;
  std::vector<QuantizedTensor> quantized;
  DecodedTensors decoded;
  std::vector<MergedMatrices> merged;
  std::optional<BudgetChoice> budget;  // set by the caller, if a budget chose types
};

// Stores weights as the readers of the target expect them (Family::convert_weights()), and a tied output as a tensor if
// the readers require this tensor. `numbers` is true if later steps change the types of tensors. A matrix of a
// reversible quantization scheme becomes its parts if the target does not hold its layout. For GGUF, or if `numbers` is
// true, parts become a matrix instead. If `numbers` is true, codes that a later cast could not decode become numbers.
// Returns std::nullopt if the model stays as it is. Throws what Family::convert_weights() and fold_remaining_parts()
// throw.
std::optional<ConvertedWeights> convert_convention(const Format& target, const Model& model, bool numbers);

// Applies all steps. `merged` has the types for matrices that adapters changed, if no other type is asked for; null:
// there are none. `types` has the types that options.budget chose; null: it chose none. Throws bad_argument if a
// pattern matches no tensor, the target's files hold no tensors of a type, or options contradict each other;
// unsupported if a tensor cannot get its type. Reads no tensor's bytes. Tensors that are to be sparse stay dense until
// make_sparse().
Transformed transform(const Model& model, const Format& target, const ConvertOptions& options,
                      const MergedTypes* merged = nullptr, const MatrixTypes* types = nullptr);

// Makes tensors with enough zeros sparse. Reads all candidates. Throws what reading throws.
void make_sparse(Transformed& transformed, const ConvertOptions& options);

}  // namespace poise
