// deflate (RFC 1951): compressed bytes, read as one stream.
//
// The stream must decode to exactly the size and the CRC-32 that its container gives: more, less, a broken stream or
// bytes after its end are errors. Memory: the decoder's window.
#pragma once

#include <cstdint>

#include <poise/blob.hpp>

namespace poise {

// The largest output of that many deflated bytes: at most 1032 each.
std::uint64_t most_inflated_bytes(std::uint64_t deflated_bytes);

// The bytes of a deflated stream after the first `skip`. The stream must decode to `size` bytes with that CRC-32,
// checked by whoever reads to its end. Requires: skip <= size, size <= most_inflated_bytes(place.length).
BlobPtr make_deflated_blob(StoredRange place, std::uint64_t size, std::uint32_t crc32, std::uint64_t skip = 0);

}  // namespace poise
