// Floating-point tensors as ggml's blocks, encoded row by row when they are read.
#pragma once

#include <memory>
#include <vector>

#include <poise/tensor.hpp>

#include "codec/block_type.hpp"

namespace poise {

// A weight for the squared error of each element of a row: how much the model's output depends on it (llama.cpp's
// imatrix).
using Importance = std::shared_ptr<const std::vector<float>>;

// The same elements in blocks. Reading throws unsupported, naming tensor and index, for an element that is not finite,
// and naming the block for one that would hold numbers that are not finite, or zeros in place of numbers that are none.
// `importance` is null, or has a finite weight of 0 or more for each element of a row; of stacked matrices, [matrices,
// rows, columns], for each matrix if it has that many. The blocks are a LossyBlob<QuantizationError>. Requires:
// has_float_elements(tensor), type.encode, rows of whole blocks.
Tensor quantize_to_blocks(const Tensor& tensor, const BlockType& type, Importance importance);

}  // namespace poise
