// Compares two blobs in constant memory.
#pragma once

#include <cstdint>

#include <poise/blob.hpp>

namespace poise {

// Compares decoded bytes until the first difference.
bool same_bytes(const Blob& a, const Blob& b);

// XXH3-64 of the first 64 KiB, or of all bytes when there are fewer.
std::uint64_t hash_of_beginning(const Blob& blob);

}  // namespace poise
