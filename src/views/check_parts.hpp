// check_parts: do a tensor's parts have the types and sizes that its layout, attributes and shape call for?
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// Throws invalid_file (without path) naming tensor, part, what was expected and what was found. Looks at no element;
// asks every part for its size, which decodes compressed parts whose size the file does not say. Passes what cannot be
// judged: layouts, types and encodings that are not known. Requires: a shape whose product fits 64 bits.
void check_parts(const Tensor& tensor);

}  // namespace poise
