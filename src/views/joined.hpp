// joined: concatenates blobs.
#pragma once

#include <vector>

#include <poise/blob.hpp>

namespace poise {

// All bytes of the first blob, then of the second, and so on. A range of their file if they are contiguous there.
// Requires: at least one blob; their total size fits 64 bits.
BlobPtr make_joined_blob(std::vector<BlobPtr> blobs);

}  // namespace poise
