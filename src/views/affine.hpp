// Affine tensors, whose codes share one scale: decoded, or with packed codes.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// The elements of an affine tensor as float32, computed when read. Reading throws invalid_file for an invalid scale or
// code. Requires: tensor.layout is Layout::affine.
BlobPtr make_decoded_blob(const Tensor& tensor);

// A qint4 tensor with one code a byte as one with two codes a byte. Reading throws invalid_file for a code that does
// not fit four bits. Other tensors are returned unchanged.
Tensor with_packed_codes(const Tensor& tensor);

}  // namespace poise
