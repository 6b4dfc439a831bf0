// Affine tensors, whose codes share one scale, as numbers and in their packed form.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// The elements of an affine tensor as float32, computed when they are read, which throws invalid_file for a scale or a
// code that is none. Requires: tensor.layout is Layout::affine.
BlobPtr make_decoded_blob(const Tensor& tensor);

// A qint4 tensor with one code a byte, the same: reading it throws invalid_file for a code that does not fit four bits.
// Other tensors come back unchanged.
Tensor with_fitting_codes(const Tensor& tensor);

// A qint4 tensor with one code a byte as one with two codes a byte. Reading throws invalid_file for a code that does
// not fit four bits. Other tensors come back unchanged.
Tensor with_packed_codes(const Tensor& tensor);

}  // namespace poise
