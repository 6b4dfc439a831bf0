// Affine tensors, whose codes share one scale: decoded, or with packed codes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "views/computed_blob.hpp"

namespace poise {

// Returns the elements of an affine tensor as float32, computed when read. Reading throws invalid_file for an invalid
// scale or code. Requires: tensor.layout is Layout::affine.
BlobPtr make_decoded_blob(const Tensor& tensor);

// Returns a qint4 tensor with one code a byte with two codes a byte. Reading throws invalid_file for a code that
// does not fit four bits. Other tensors are returned unchanged.
Tensor with_packed_codes(const Tensor& tensor);

// Returns the same elements as an affine tensor, whose qint4 codes are packed, or as a tensor of groups. Lazy: the
// first read of the scale or of a byte makes one pass over the elements to find the scale. That throws unsupported,
// naming tensor and index, when an element is infinite or NaN. `codes`: gets the blob of the codes. Requires:
// has_float_elements(tensor) and type.quantized().
Tensor quantize(const Tensor& tensor, const StoredType& type, LossyBlobPtr<QuantizationError>* codes = nullptr);

// Returns the scale for float32 elements, in a pass over them. Uses all threads; the result does not depend on their
// number. Throws unsupported, naming tensor and index, when an element is infinite or NaN. Requires: type.quantized().
Affine find_scale(const std::string& name, const Blob& elements, const StoredType& type);

}  // namespace poise
