// Finds codes that no scheme has folded: the scales next to them show that they are not ordinary numbers.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct UnfoldedCodes {
  const Tensor* scale;
  std::string_view programs;  // the programs that store such parts; empty: several do
};

// Finds the scales of a tensor of codes, by the names of parts in any scheme; std::nullopt if there are none.
std::optional<UnfoldedCodes> find_unfolded_codes(const Model& model, const Tensor& tensor);

// Returns true if the model has a tensor with find_unfolded_codes().
bool has_unfolded_codes(const Model& model);

// Returns the tensor that scales the numbers or codes of one byte in "X.weight": "X.weight_scale" or
// "X.weight_scale_inv"; or bitsandbytes' codes in the bytes of wider numbers: "X.weight.absmax". Null: the tensor is
// not a matrix of such numbers, or has no such tensor next to it.
const Tensor* find_scale_of_codes(const Model& model, const Tensor& tensor);

// Finds tensors of any program that may scale others: "scale" is a part of their names.
class NearbyScales {
 public:
  // Requires: the model outlives this.
  explicit NearbyScales(const Model& model);

  // Returns a scale in the module of a dense tensor, or below the tensor's name, if its rows hold floating-point
  // numbers of at most eight bits; else null.
  const Tensor* find(const Tensor& tensor) const;

 private:
  std::unordered_map<std::string_view, std::vector<const Tensor*>> scales_;  // the keys are the modules' names
};

}  // namespace poise
