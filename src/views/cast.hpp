// Floating-point tensors in another width, converted in chunks when read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <poise/tensor.hpp>

#include "numeric/cast_kernels.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Reads `out.size()` elements as float32, from element `first` on; `in` is where element 0 begins. Of two elements in a
// byte, the one with the even index is in the low half. Requires: a floating dtype. No alignment needed.
void widen(DType dtype, const std::byte* in, std::span<float> out, std::uint64_t first = 0);

// Returns true for types whose numbers all fit float32: the floating types except f64.
bool can_widen(DType dtype);

// Returns the first `elements` elements of `data` (of type `from`, belonging to the tensor `name`) as `to` (f32, f16 or
// bf16): computed, or `data` itself if that is its type. Reading throws unsupported, naming tensor and index, when a
// finite value overflows `to`. `cast`: gets the computed blob, if there is one. Requires: can_widen(from) or f64;
// `data` holds that many.
BlobPtr make_cast_blob(std::string name, BlobPtr data, DType from, std::uint64_t elements, DType to,
                       LossyBlobPtr<CastStats>* cast = nullptr);

}  // namespace poise
