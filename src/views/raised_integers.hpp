// raised_integers: 64-bit integers plus the same number, when read.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Little-endian integers of 64 bits, each plus `addend`; a sum beyond 64 bits wraps around. Requires: the blob's size
// is a multiple of 8.
BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend);

}  // namespace poise
