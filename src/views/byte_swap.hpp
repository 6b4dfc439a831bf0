// Byte swapping: elements stored big-endian, as little-endian ones.
#pragma once

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// The bytes of each number in an element: half of a complex element, 0 for numbers that share a byte. Requires: dtype
// is not `unknown`.
unsigned number_bytes(DType dtype);

// Reverses the bytes of every number of `width` bytes; returns the blob itself for width 0 and 1.
BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width);

}  // namespace poise
