// quantize: floating-point tensors as codes with one scale per tensor, computed in chunks when read.
#pragma once

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

namespace poise {

// The same elements as an affine tensor, whose qint4 codes are packed, or as a tensor of groups. Lazy: the first read
// of the scale or of a byte makes one pass over the elements to find the scale. That throws unsupported, naming tensor
// and index, when an element is infinite or NaN. The codes are a LossyBlob<QuantizationError>. Requires:
// has_float_elements(tensor) and type.quantized().
Tensor quantize(const Tensor& tensor, const StoredType& type);

}  // namespace poise
