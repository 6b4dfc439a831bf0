// make_finite_blob: computed float32 numbers that are infinite only where their inputs are.
#pragma once

#include <string>
#include <vector>

#include <poise/tensor.hpp>

namespace poise {

// The same numbers. Reading throws unsupported, "WHAT: element 7 is too large for f32", when one is infinite although
// no floating-point number of the inputs is; all of those are read then. Requires: `numbers` is float32; inputs of
// known types.
BlobPtr make_finite_blob(std::string what, BlobPtr numbers, std::vector<Part> inputs);

}  // namespace poise
