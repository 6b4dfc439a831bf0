// Formats arrays as NumPy prints them by default: 8 digits, 75 columns, and three numbers at each end of a dimension if
// the array has more than 1,000.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poise/dtype.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"

namespace poise::cli {

// Returns an array as NumPy prints it. `read` returns the bytes of the element at `indices`; it is called for printed
// elements only. Throws unsupported for more than 2^20 of these. Requires: `dtype` is f64, f32, f16, bf16, an integer
// type or boolean.
std::string format_array(const Shape& shape, DType dtype,
                         FunctionRef<std::vector<std::byte>(std::span<const std::uint64_t> indices)> read);

}  // namespace poise::cli
