// MX tensors as numbers (tensor/mx_scheme.hpp says what they are).
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// True for MX tensors whose elements are of a type that is known.
bool is_mx(const Tensor& tensor);

// The elements as float32, computed when they are read. Reading throws unsupported, naming tensor and index, when a
// number is too large for that. Requires: is_mx(tensor). Throws what check_mx_parts() throws.
BlobPtr make_mx_decoded_blob(const Tensor& tensor);

}  // namespace poise
