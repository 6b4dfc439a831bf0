// check_parts: checks that a tensor's parts have the types and sizes that its layout, attributes and shape require, and
// that they agree.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// Throws invalid_file (without path) naming tensor, part, what was expected and what was found. Reads no element, but
// asks every part for its size; a compressed part without a size is decoded for that. Accepts unknown layouts, types
// and encodings. Requires: a shape whose product fits 64 bits.
void check_parts(const Tensor& tensor);

// The same, and that parts do not contradict each other: an index names groups that there are. Reads such an index.
void check_content(const Tensor& tensor);

}  // namespace poise
