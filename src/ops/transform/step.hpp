// Step: one thing that a conversion does to each tensor, from headers alone.
//
// transform.cpp has the list, in order. A new step is one file in this folder, its line among the declarations below,
// and its row in the list.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/convert.hpp>

#include "formats/format.hpp"

namespace poise {

// What the steps may know of the conversion as a whole.
struct Conversion {
  const Model& input;      // its weights in the form that the target's readers want
  const Model& described;  // the card, configuration and attributes that will be written; no tensors
  const Format& target;
  const ConvertOptions& options;
};

// A tensor that is cast, or whose values are.
struct CastTensor {
  std::string name;
  DType from;
  DType to;
};

struct QuantizedTensor {
  std::string name;
  StoredType type;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

// One tensor on its way through the steps.
struct TensorPlan {
  // Tensors with the same text share one warning: "tensor a and 2 more: text".
  struct Warning {
    std::string subject;
    std::string text;
  };
  enum class Fate {
    written,
    skipped,
    left_out
  };  // skipped: as the options ask; left out: the target has no use for it

  explicit TensorPlan(const Tensor& original) : input(&original), tensor(original) {}

  void warn(std::string text) { warnings.push_back({tensor.name, std::move(text)}); }

  const Tensor* input;
  Tensor tensor;  // what the steps until now make of it; computed when it is read
  Fate fate = Fate::written;
  std::optional<StoredType> type;  // what its elements are to become; nothing: they keep their type
  bool is_transposed = false;      // `tensor` has the rows of the input as columns
  bool may_become_sparse = false;  // make_sparse() counts its zeros
  std::optional<CastTensor> cast;
  std::optional<QuantizedTensor> quantized;
  std::vector<Warning> warnings;
};

class Step {
 public:
  virtual ~Step() = default;
  // Is called for each tensor that the steps before go on with, in the model's order.
  virtual void apply(TensorPlan& plan) = 0;
  // Is called after the last tensor. `made` has all tensors, and the warnings of the steps before and of this one.
  // Throws bad_argument when an option has had nothing to do.
  virtual void finish(Model& /*made*/) {}
};

// What makes a step. Throws bad_argument for options that contradict each other or that the target cannot follow.
// Requires: `conversion` and what it refers to outlive the step.
using MakeStep = std::unique_ptr<Step> (*)(const Conversion& conversion);

std::unique_ptr<Step> make_select_step(const Conversion& conversion);           // only, skip, unused weights
std::unique_ptr<Step> make_choose_type_step(const Conversion& conversion);      // dtype, quantize, recipe, keep
std::unique_ptr<Step> make_rows_for_blocks_step(const Conversion& conversion);  // transposes where blocks need it
std::unique_ptr<Step> make_cast_step(const Conversion& conversion);             // to other floating-point types
std::unique_ptr<Step> make_quantize_step(const Conversion& conversion);         // to codes
std::unique_ptr<Step> make_fit_layout_step(const Conversion& conversion);  // dense, where the target lacks the layout
std::unique_ptr<Step> make_transpose_back_step(
    const Conversion& conversion);  // what make_rows_for_blocks_step transposed
std::unique_ptr<Step> make_keep_other_parts_step(const Conversion& conversion);  // parts next to the elements
std::unique_ptr<Step> make_sparsify_step(const Conversion& conversion);          // sparse, min_sparsity

// Can the target's files have the tensor's layout? What has no numbers is held by every format, or refused by its
// writer.
bool has_layout_for(const Format& target, const Tensor& tensor);

// Does the matrix become blocks along its columns if it becomes blocks?
bool blocks_run_along_columns(const Conversion& conversion, const Tensor& tensor);

// Does a dense tensor have parts besides its elements?
bool has_other_parts(const Tensor& tensor);

// Throws bad_argument that names the option and a pattern that matches no tensor.
[[noreturn]] void refuse_pattern(std::string_view option, std::string_view pattern);

// One warning about all these tensors; none where there are none.
void add_warning(Model& model, const std::vector<std::string>& tensors, std::string_view text);

inline constexpr std::string_view kLostParts = "its parts beside data are lost, for it is dense no more";

}  // namespace poise
