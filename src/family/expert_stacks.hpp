// Stacks or separates the matrices of a layer's experts (ExpertsStored), as lazy views.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include <poise/model.hpp>

#include "family/config_view.hpp"
#include "family/family.hpp"

namespace poise {

// Describes a stack NAME of all experts' matrices, with biases NAME_bias. Its outputs alternate between the modules. A
// separate expert 7 has the tensors 7.MODULE.weight and 7.MODULE.bias.
struct ExpertStack {
  std::string_view name;
  std::span<const std::string_view> modules;
};

// Converts the experts of one layer of a model. Requires: model, stacks and `out` outlive it.
class ExpertLayer {
 public:
  // `prefix` comes before the names above: "model.layers.0.mlp.experts.". convert() adds tensors to `out`.
  ExpertLayer(const Model& model, std::string prefix, std::span<const ExpertStack> stacks, Model& out);

  // Adds the layer's tensors in the form `to`. Codes of MXFP4 stay the same: a stack [experts, out, in] becomes
  // separate matrices in blocks of MXFP4, as llama.cpp has them, and the reverse. When such a stack is separated,
  // blocks of other types stay blocks. All other matrices become dense numbers. Throws invalid_file (without path) for
  // tensors that are missing or do not fit each other. Requires: separate matrices that become a stack [experts, out,
  // in] are blocks of MXFP4.
  void convert(ExpertsStored from, ExpertsStored to);

  // Returns the tensors that were converted to others.
  const std::set<const Tensor*>& used() const { return used_; }

 private:
  const Tensor* find_tensor(std::string_view name) const;
  const Tensor& require_tensor(std::string_view name);
  const Tensor& require_stack(const ExpertStack& stack);
  Tensor transpose_stack(const ExpertStack& stack);
  void add_tensor(std::string_view name, Tensor tensor);
  void separate_experts(ExpertsStored from);
  void add_separate_tensors(std::span<const Tensor> wholes, std::string_view ending);
  void stack_experts(ExpertsStored to);
  Tensor stack_modules(const ExpertStack& stack, std::string_view ending, const Shape& shape);

  const Model& model_;
  std::string prefix_;
  std::span<const ExpertStack> stacks_;
  Model& out_;
  std::set<const Tensor*> used_;
};

// The experts of gpt-oss have these forms:
//
//   stacked_in_out   experts.gate_up_proj [experts, in, 2 * inner] and experts.down_proj [experts, inner, out],
//                    numbers, as transformers computes with them
//   stacked_out_in   the same matrices as [experts, 2 * inner, in] and [experts, out, inner] in the layout zt.mx/1,
//                    which the scheme MXFP4 makes of the published directories (schemes/scheme.hpp)
//   separate         experts.7.gate_proj.weight [inner, in], up_proj, down_proj [out, inner]: as llama.cpp has them
//
// In a stack the outputs of gate and up are interleaved. The biases of stacks are experts.gate_up_proj_bias [experts,
// 2 * inner] and experts.down_proj_bias [experts, out]. Separate experts have experts.7.gate_proj.bias, ...

}  // namespace poise
