// part_types: what the types of a tensor's parts tell before anything reads them.
#pragma once

#include <algorithm>

#include <poise/tensor.hpp>

namespace poise {

// Does Poise know the type of every part?
inline bool has_known_types(const Tensor& tensor) {
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

}  // namespace poise
