// Floating-point tensors as ggml's blocks, encoded row by row when read.
#pragma once

#include <memory>
#include <vector>

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "codec/block_type.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// A weight for the squared error of each element of a row: how much the model's output depends on it (llama.cpp's
// imatrix).
using Importance = std::shared_ptr<const std::vector<float>>;

// Returns the same elements in blocks. Reading throws unsupported: naming tensor and index for an element that is not
// finite, and naming the block when its numbers would decode to non-finite numbers, or nonzero ones to zeros.
// `importance` is null, or has a finite weight of 0 or more for each element of a row; for stacked matrices, [matrices,
// rows, columns], it may have that many for each matrix. `codes`: gets the blob of the blocks. Requires:
// has_float_elements(tensor), type.encode, rows of whole blocks.
Tensor quantize_to_blocks(const Tensor& tensor, const BlockType& type, Importance importance,
                          LossyBlobPtr<QuantizationError>* codes = nullptr);

}  // namespace poise
