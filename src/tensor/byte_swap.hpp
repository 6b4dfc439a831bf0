// Byte swapping: elements stored big-endian, as little-endian ones.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Every run of `width` bytes reversed. Requires: width is 1, 2, 4, 8 or 16 and divides the blob's size.
BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width);

}  // namespace poise
