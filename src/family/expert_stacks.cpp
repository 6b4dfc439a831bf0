#include "family/expert_stacks.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "views/mx.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem));
}

void require_rank(const Tensor& tensor, std::size_t rank) {
  if (tensor.shape.size() != rank)
    fail(tensor, fmt::format("its shape is {}, expected {} dimensions", to_string(tensor.shape), rank));
}

void require_shape(const Tensor& tensor, const Shape& shape) {
  if (!(tensor.shape == shape))
    fail(tensor, fmt::format("its shape is {}, expected {}", to_string(tensor.shape), to_string(shape)));
}

std::string format_bias_name(const ExpertStack& stack) { return fmt::format("{}_bias", stack.name); }

}  // namespace

ExpertLayer::ExpertLayer(const Model& model, std::string prefix, std::span<const ExpertStack> stacks, Model& out)
    : model_(model), prefix_(std::move(prefix)), stacks_(stacks), out_(out) {}

void ExpertLayer::convert(ExpertsStored from, ExpertsStored to) {
  if (to == ExpertsStored::separate) return separate_experts(from);
  if (from == ExpertsStored::separate) return stack_experts(to);
  for (const ExpertStack& stack : stacks_) {
    add_tensor(stack.name, transpose_stack(stack));
    add_tensor(format_bias_name(stack), require_tensor(format_bias_name(stack)));
  }
}

const Tensor* ExpertLayer::find_tensor(std::string_view name) const {
  return find_weight(model_, find_family_or_llama(model_), prefix_ + std::string(name));
}

const Tensor& ExpertLayer::require_tensor(std::string_view name) {
  const Tensor* tensor = find_tensor(name);
  if (tensor == nullptr) throw Error(ErrorKind::invalid_file, fmt::format("tensor {}{} is missing", prefix_, name));
  used_.insert(tensor);
  return *tensor;
}

const Tensor& ExpertLayer::require_stack(const ExpertStack& stack) {
  const Tensor& tensor = require_tensor(stack.name);
  require_rank(tensor, 3);
  return tensor;
}

// Returns the numbers of a stack with its last two axes exchanged: [experts, in, out] for [experts, out, in].
Tensor ExpertLayer::transpose_stack(const ExpertStack& stack) {
  return transpose_view(make_dense_numbers(require_stack(stack)));
}

void ExpertLayer::add_tensor(std::string_view name, Tensor tensor) {
  tensor.name = prefix_ + std::string(name);
  out_.add(std::move(tensor));
}

void ExpertLayer::separate_experts(ExpertsStored from) {
  std::vector<Tensor> matrices;
  std::vector<Tensor> biases;
  for (const ExpertStack& stack : stacks_) {
    const Tensor& tensor = require_stack(stack);
    matrices.push_back(from == ExpertsStored::stacked_out_in ? convert_to_whole_rows(tensor) : transpose_stack(stack));
    const Shape& shape = matrices.back().shape;
    if (shape[1] % stack.modules.size() != 0)
      fail(tensor, fmt::format("{} outputs, expected a multiple of {}: those of {} alternate", shape[1],
                               stack.modules.size(), fmt::join(stack.modules, " and ")));
    if (shape[0] != matrices.front().shape[0])
      fail(tensor, fmt::format("{} experts, expected {}", shape[0], matrices.front().shape[0]));
    const Tensor& bias = require_tensor(format_bias_name(stack));
    require_shape(bias, {shape[0], shape[1]});
    biases.push_back(make_dense_numbers(bias));
  }
  add_separate_tensors(matrices, "weight");
  add_separate_tensors(biases, "bias");
}

void ExpertLayer::add_separate_tensors(std::span<const Tensor> wholes, std::string_view ending) {
  for (std::uint64_t expert = 0; expert < wholes.front().shape[0]; ++expert) {
    for (std::size_t s = 0; s < stacks_.size(); ++s) {
      const auto modules = stacks_[s].modules;
      for (std::size_t i = 0; i < modules.size(); ++i) {
        const Tensor rows = select_rows(wholes[s], expert, i, modules.size());
        add_tensor(fmt::format("{}.{}.{}", expert, modules[i], ending),
                   is_mxfp4(rows) ? convert_mxfp4_to_blocks(rows) : rows);
      }
    }
  }
}

void ExpertLayer::stack_experts(ExpertsStored to) {
  const auto find_shape = [&](const ExpertStack& stack) -> const Shape& {
    const Tensor& first = require_tensor(fmt::format("0.{}.weight", stack.modules[0]));
    require_rank(first, 2);
    return first.shape;
  };
  for (const ExpertStack& stack : stacks_) {
    const Tensor whole = interleave_rows(stack_modules(stack, "weight", find_shape(stack)), stack.modules.size());
    add_tensor(stack.name, to == ExpertsStored::stacked_out_in ? convert_blocks_to_mxfp4(whole)
                                                               : transpose_view(make_dense_numbers(whole)));
  }
  for (const ExpertStack& stack : stacks_) {
    const Tensor all = stack_modules(stack, "bias", {find_shape(stack)[0]});
    add_tensor(format_bias_name(stack), interleave_rows(make_dense_numbers(all), stack.modules.size()));
  }
}

// Stacks the tensors with that ending: all modules of expert 0, then those of expert 1, ... Ends before the first
// expert without the first module of the first stack, but requires expert 0. Throws invalid_file if a tensor is missing
// or has another shape.
Tensor ExpertLayer::stack_modules(const ExpertStack& stack, std::string_view ending, const Shape& shape) {
  std::vector<Tensor> all;
  const auto format_name = [&](std::size_t expert, std::string_view module, std::string_view last) {
    return fmt::format("{}.{}.{}", expert, module, last);
  };
  for (std::size_t expert = 0;
       expert == 0 || find_tensor(format_name(expert, stacks_[0].modules[0], "weight")) != nullptr; ++expert) {
    for (const std::string_view module : stack.modules) {
      all.push_back(require_tensor(format_name(expert, module, ending)));
      require_shape(all.back(), shape);
    }
  }
  return stack_tensors(all);
}

}  // namespace poise
