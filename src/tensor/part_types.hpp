// part_types: checks of a tensor's parts by their types, without reading their bytes.
#pragma once

#include <algorithm>
#include <string>

#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// Returns true when Poise knows the type of every part.
inline bool has_known_types(const Tensor& tensor) {
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

// found_value: an attribute in a message about an unexpected value.

// "nothing", or the value as JSON, at most a hundred bytes of it.
std::string found_value(const Value* value);

}  // namespace poise
