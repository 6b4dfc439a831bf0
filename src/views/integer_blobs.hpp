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

// flipped_signs: signed bytes as unsigned ones, plus 128.

// Inverts the highest bit of every byte, when read.
BlobPtr make_flipped_signs_blob(BlobPtr blob);

// raised_integers: 64-bit integers plus the same number, when read.

// Little-endian integers of 64 bits, each plus `addend`; a sum beyond 64 bits wraps around. Requires: the blob's size
// is a multiple of 8.
BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend);

}  // namespace poise
