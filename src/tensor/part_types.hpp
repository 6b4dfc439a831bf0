// part_types: what the types of a tensor's parts tell without reading them.
#pragma once

#include <algorithm>
#include <string>

#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// True when Poise knows the type of every part.
inline bool has_known_types(const Tensor& tensor) {
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

// found_value: an attribute in a message that says what else was expected.

// "nothing", or the value as JSON, at most a hundred bytes of it.
std::string found_value(const Value* value);

}  // namespace poise
