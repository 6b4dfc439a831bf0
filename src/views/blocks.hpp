// ggml's blocks as numbers, decoded when they are read.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// True for blocks of a type that has numbers.
bool has_decoded_blocks(const Tensor& tensor);

// The elements as float32. Requires: has_decoded_blocks(tensor). Throws what check_block_parts() throws.
BlobPtr make_block_decoded_blob(const Tensor& tensor);

}  // namespace poise
