// Tensors of ggml's blocks: one part "data" of u8, in which each row is whole blocks of a type of codec/block_type.hpp;
// or each column of a matrix, one after the other.
//
// zTensor 2 names those of rows `gguf.<type>/1`, and so does Poise; those of columns are `poise.<type>.columns/1`. The
// shape counts elements.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/tensor.hpp>

#include "codec/block_type.hpp"

namespace poise {

// "gguf.q4_k/1"
std::string_view block_layout_name(const BlockType& type, BlocksAlong along);

// Nothing: no blocks that Poise knows are called so.
std::optional<TensorLayout> block_layout_named(std::string_view name);

// Throws invalid_file (without path) naming tensor and part where the part is missing, not alone, no u8, or of another
// size than the shape needs. Requires: tensor.layout.blocks() is not null.
void check_block_parts(const Tensor& tensor);

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, HeldBlob data);

}  // namespace poise
