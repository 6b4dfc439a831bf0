// Makes tensors of codes from floating-point tensors: affine codes, which share one scale, and ggml's blocks. Packs
// affine codes.
#pragma once

#include <memory>
#include <vector>

#include <poise/blob.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "codec/block_type.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Packs a qint4 tensor that has one code a byte: the result has two codes a byte. Reading throws invalid_file for a
// code that does not fit four bits. Returns other tensors unchanged.
Tensor make_packed_qint4_view(const Tensor& tensor);

// Returns the elements quantized to `type`: an affine tensor (qint4 codes are packed), a tensor of groups, or blocks.
// They are quantized when they are read. The first read of an affine tensor's scale or codes makes a pass over the
// elements to find the scale; it throws unsupported, naming tensor and index, if an element is infinite or NaN. Reading
// codes throws unsupported if they would decode to infinity. `codes`, if not null, receives the blob of the codes. For
// groups and blocks, throws and requires what quantize_groups() and quantize_to_blocks() do. Requires:
// has_float_elements(tensor) and type.quantized().
Tensor quantize(const Tensor& tensor, const StoredType& type, LossyBlobPtr<QuantizationError>* codes = nullptr);

// Holds, for each column, the weight of its squared errors: how much the model's output depends on this column
// (llama.cpp's imatrix).
using Importance = std::shared_ptr<const std::vector<float>>;

// Returns the same elements in blocks. Reading throws unsupported for an element that is not finite, naming tensor and
// index. It throws unsupported, naming the block, if its numbers would become infinite or NaN, or if large ones would
// become far smaller or zeros. `importance` is null, or has a finite weight of 0 or more for each element of a row; for
// stacked matrices, [matrices, rows, columns], it may have that many for each matrix. `codes`, if not null, receives
// the blob of the blocks. Requires: has_float_elements(tensor), type.encode, rows of whole blocks.
Tensor quantize_to_blocks(const Tensor& tensor, const BlockType& type, Importance importance,
                          LossyBlobPtr<QuantizationError>* codes = nullptr);

}  // namespace poise
