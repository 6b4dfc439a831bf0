// Blocks of big-endian files, as little-endian ones.
#pragma once

#include <poise/blob.hpp>

#include "codec/block_type.hpp"

namespace poise::gguf {

// Requires: type.swapped; the blob is whole blocks.
BlobPtr make_swapped_blocks(BlobPtr blob, const BlockType& type);

}  // namespace poise::gguf
