// compare_numbers: how far the elements of two tensors are from each other, in the precision of their types.
#pragma once

#include <cstdint>
#include <functional>

#include <poise/diff.hpp>
#include <poise/tensor.hpp>

namespace poise {

// True when the elements of both are real numbers, of both complex ones, or of both integers (booleans are 0 and 1).
bool have_like_numbers(const Tensor& a, const Tensor& b);

// Floating-point numbers are compared as float64 when one of them is of that type, and as float32 otherwise, which
// holds all others; integers exactly. Of two sparse tensors only stored elements are looked at. `compared` learns of
// every piece how many elements it had. Throws what reading the blobs throws. Requires: have_like_numbers(a, b), equal
// shapes.
TensorDifference::Values compare_numbers(const Tensor& a, const Tensor& b,
                                         const std::function<void(std::uint64_t)>& compared);

// As ==, but NaN is the same as NaN.
bool same_number(float a, float b);

}  // namespace poise
