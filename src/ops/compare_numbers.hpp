// Measures the distances between the elements of two tensors, in the precision of their types.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <poise/diff.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// Returns true when the elements of both are real numbers, complex numbers, or integers (booleans are 0 and 1).
bool have_like_numbers(const Tensor& a, const Tensor& b);

// Receives the numbers of two tensors from element `first` on, if both are read as float32. Calls come in order.
using SeeFloats = std::function<void(std::uint64_t first, std::span<const float> a, std::span<const float> b)>;

// Compares floating-point numbers as float64 if one of them is of that type, else as float32, which holds all others;
// integers exactly. For two sparse tensors looks only at stored elements. Counts elements as different that are further
// apart than `tolerance`; the other figures are of all elements. Calls `compared` after every piece with its number of
// elements. Shows the numbers to `see`, if there is one. Throws what reading the blobs throws. Requires:
// have_like_numbers(a, b), equal shapes.
TensorDifference::Values compare_numbers(const Tensor& a, const Tensor& b, double tolerance,
                                         const std::function<void(std::uint64_t)>& compared, const SeeFloats& see = {});

// Returns a function that receives the numbers of a tensor while diff() compares them, or an empty one. Several threads
// call it.
using ObserveTensor = std::function<SeeFloats(const Tensor& a)>;

// Does what diff() does, and passes the numbers of tensors whose bytes differ to the observers.
DiffReport diff_observed(const Model& a, const Model& b, const DiffOptions& options, const ObserveTensor& observe);

// Does what == does, but NaN equals NaN.
bool is_same_number(float a, float b);

// Compares attribute values, independent of the order of keys in maps.

// Does what == does, but NaN equals NaN, and maps are equal when they have equal values under the same keys.
bool is_same_value(const Value& a, const Value& b);

}  // namespace poise
