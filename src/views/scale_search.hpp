// scale_search: finds the scale of a tensor's codes in a pass over its elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

namespace poise {

// The scale for float32 elements. Uses all threads; the result does not depend on their number. Throws unsupported,
// naming tensor and index, when an element is infinite or NaN. Requires: type.quantized().
Affine find_scale(const std::string& name, const Blob& elements, const StoredType& type);

}  // namespace poise
