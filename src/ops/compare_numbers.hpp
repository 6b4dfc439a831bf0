// Measures the distances between the elements of two tensors, in the precision of their types.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <poise/diff.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// Returns true if both tensors have real numbers (booleans are 0 and 1), or both complex numbers.
bool have_like_numbers(const Tensor& a, const Tensor& b);

// Receives the numbers of two tensors from element `first` on, if both are read as float32. Calls come in order.
using SeeFloats = std::function<void(std::uint64_t first, std::span<const float> a, std::span<const float> b)>;

// Compares integers exactly, with floating-point numbers, too. Reads float64 as it is, and all other floating-point
// types as float32. Of two sparse tensors, compares only stored elements. Elements count as different if their distance
// exceeds `tolerance`; the other figures are of all elements. Calls `advance` with the number of elements of every
// piece, and, unless both are sparse, `see` with its numbers. Throws what reading the blobs throws. Requires:
// have_like_numbers(a, b), equal shapes.
TensorDifference::Values compare_numbers(const Tensor& a, const Tensor& b, double tolerance,
                                         const std::function<void(std::uint64_t)>& advance, const SeeFloats& see = {});

// Returns a function that receives the numbers of `a`, a tensor of the first model, and of its counterpart while diff()
// compares them; an empty function if the caller does not need them. Several threads call an ObserveTensor.
using ObserveTensor = std::function<SeeFloats(const Tensor& a)>;

// Returns what diff() returns, and passes the numbers of tensors whose bytes differ to the functions that `observe`
// returns.
DiffReport diff_observed(const Model& a, const Model& b, const DiffOptions& options, const ObserveTensor& observe);

// Compares as == does, but NaN equals NaN.
bool is_same_number(float a, float b);

// Compares as == does, but NaN equals NaN, and maps are equal if they have equal values under the same keys, in any
// order.
bool is_same_value(const Value& a, const Value& b);

}  // namespace poise
