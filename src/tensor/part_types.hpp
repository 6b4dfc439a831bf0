// part_types: what the types of a tensor's parts tell without reading them.
#pragma once

#include <algorithm>

#include <poise/tensor.hpp>

namespace poise {

// True when Poise knows the type of every part.
inline bool has_known_types(const Tensor& tensor) {
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

}  // namespace poise
