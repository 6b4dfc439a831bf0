// Tensors whose values are checked while they are read: what verify() calls an error, no writer copies.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// The same tensor. Reading a boolean that is neither 0 nor 1, an unused half of a byte that is not zero, or a byte
// whose code does not fit four bits, throws invalid_file with tensor, part, element and place. Parts that have no such
// values stay as they are, so that their bytes are copied as before.
Tensor with_checked_values(const Tensor& tensor);

// True when a part of the tensor is checked.
bool has_checked_values(const Tensor& tensor);

}  // namespace poise
