// Blobs of integers that change when they are read.
#pragma once

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// Returns the bytes of each number in an element: half of a complex element, 0 for numbers that share a byte. Requires:
// dtype is not `unknown`.
unsigned number_bytes(DType dtype);

// Reverses the bytes of every number of `width` bytes; returns the blob itself for width 0 and 1.
BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width);

// Inverts the highest bit of every byte, when read: signed bytes become unsigned ones, plus 128.
BlobPtr make_flipped_signs_blob(BlobPtr blob);

// Returns little-endian integers of 64 bits, each plus `addend`, computed when read; a sum beyond 64 bits wraps around.
// Requires: the blob's size is a multiple of 8.
BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend);

}  // namespace poise
