// Byte swapping: elements stored big-endian, as little-endian ones.
#pragma once

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// Every number reversed, each half of a complex one by itself. Requires: dtype is not `unknown`.
BlobPtr make_byte_swapped_blob(BlobPtr blob, DType dtype);

}  // namespace poise
