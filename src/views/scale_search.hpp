// scale_search: the pass over a tensor's elements that decides how its codes are scaled.
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
