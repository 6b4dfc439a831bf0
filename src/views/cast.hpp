// cast: floating-point tensors in another width, computed chunk by chunk when they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <poise/tensor.hpp>

#include "numeric/cast_kernels.hpp"
#include "views/lossy_blob.hpp"

namespace poise {

// `out.size()` elements as float32: those from `first` on of the elements whose bytes begin at `in`. Of types with two
// elements a byte the one with the even index is in the low half. Requires: a floating dtype. No alignment needed.
void widen(DType dtype, const std::byte* in, std::span<float> out, std::uint64_t first = 0);

// True for the types that float32 holds every number of: all floating ones but f64.
bool can_widen(DType dtype);

// The first `elements` elements of `data` (of type `from`, belonging to the tensor `name`) as `to` (f32, f16 or bf16):
// a LossyBlob<CastStats>, or `data` itself where that is its type. Reading throws unsupported, naming tensor and index,
// when a finite value overflows `to`. Requires: can_widen(from) or f64; `data` holds as many.
BlobPtr make_cast_blob(std::string name, BlobPtr data, DType from, std::uint64_t elements, DType to);

}  // namespace poise
