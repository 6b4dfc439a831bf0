// Arrays as NumPy prints them, with its usual options: 8 digits, 75 columns, three numbers at each end of a dimension
// if there are more than 1,000.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poise/dtype.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"

namespace poise::cli {

// Returns an array as NumPy prints it. The numbers that are printed are read one at a time: `read` returns the bytes of
// the element at these indices. Requires: a type of whole bytes: floating-point, integer or boolean.
std::string format_array(const Shape& shape, DType dtype,
                         FunctionRef<std::vector<std::byte>(std::span<const std::uint64_t> indices)> read);

}  // namespace poise::cli
