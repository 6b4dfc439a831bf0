// joined: blobs one after the other, as one.
#pragma once

#include <vector>

#include <poise/blob.hpp>

namespace poise {

// All bytes of the first, then of the second, and so on. A part of their file where they follow each other there.
// Requires: a blob at least; their sizes fit 64 bits together.
BlobPtr make_joined_blob(std::vector<BlobPtr> blobs);

}  // namespace poise
