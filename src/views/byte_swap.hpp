// Byte swapping: elements stored big-endian, as little-endian ones.
#pragma once

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// The bytes of each number in an element: half of a complex one, 0 for numbers that share a byte. Requires: dtype is
// not `unknown`.
unsigned number_bytes(DType dtype);

// Every number of `width` bytes reversed; the blob itself where numbers are single bytes, or less.
BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width);

}  // namespace poise
