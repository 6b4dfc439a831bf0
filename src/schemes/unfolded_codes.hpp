// Finds codes that no scheme has folded. The scales next to them show that they are not ordinary numbers.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct UnfoldedCodes {
  const Tensor* scale;
  std::string_view programs;  // the programs that store such parts; empty: not determined
};

// Finds the scales of a tensor of codes by the names that schemes of directories use. Returns std::nullopt if the model
// has none, or if the tensor cannot hold codes.
std::optional<UnfoldedCodes> find_unfolded_codes(const Model& model, const Tensor& tensor);

// Returns true if find_unfolded_codes() finds the scales of any tensor.
bool has_unfolded_codes(const Model& model);

// Returns the scales of a matrix "X.weight": "X.weight_scale" or "X.weight_scale_inv" if its elements have one byte, or
// "X.weight.absmax" for bitsandbytes' codes in the bytes of wider numbers. Null: the tensor is not such a matrix, or
// the model has no such scales.
const Tensor* find_scale_of_codes(const Model& model, const Tensor& tensor);

// Finds tensors that may be scales of others, in files of any program: the last component of their names contains
// "scale".
class NearbyScales {
 public:
  // Requires: the model outlives this.
  explicit NearbyScales(const Model& model);

  // Returns a scale near `tensor`: for X.weight, one such as X.scale or X.weight.scale. Returns null if there is none,
  // and unless `tensor` is dense, has two dimensions or more, and holds floating-point numbers of at most eight bits.
  const Tensor* find(const Tensor& tensor) const;

 private:
  std::unordered_map<std::string_view, std::vector<const Tensor*>> scales_;  // the keys are the modules' names
};

}  // namespace poise
