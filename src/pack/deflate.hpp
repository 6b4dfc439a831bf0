// deflate (RFC 1951): compressed bytes, read as one stream.
//
// The stream must decode to exactly the size and the CRC-32 that its container has for it: more, less, a broken stream
// or bytes after its end are errors. No more memory is used than the decoder's window.
#pragma once

#include <cstdint>

#include <poise/blob.hpp>

namespace poise {

// The most bytes that so many deflated bytes decode to: a byte of deflate makes 1032 at most.
std::uint64_t most_inflated_bytes(std::uint64_t deflated_bytes);

// The bytes of a deflated stream behind the first `skip`. The stream decodes to `size` bytes with that CRC-32, which is
// checked where the stream is read to its end. Requires: skip <= size, size <= most_inflated_bytes(place.length).
BlobPtr make_deflated_blob(StoredRange place, std::uint64_t size, std::uint32_t crc32, std::uint64_t skip = 0);

}  // namespace poise
