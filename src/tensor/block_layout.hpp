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

// Which way blocks run: along the rows of a tensor, or along the columns of a matrix, whose transposed one is stored
// (so llama.cpp has the matrices of a GPT-2).
enum class BlocksAlong : std::uint8_t { rows, columns };

// Requires: a row of block_types().
TensorLayout block_layout(const BlockType& type, BlocksAlong along = BlocksAlong::rows);

// Null for other layouts.
const BlockType* block_type(const TensorLayout& layout);
BlocksAlong blocks_along(const TensorLayout& layout);  // rows for other layouts

// Nothing: no blocks that Poise knows are called so.
std::optional<TensorLayout> block_layout_named(std::string_view name);

// Throws invalid_file (without path) naming tensor and part where the part is missing, not alone, no u8, or of another
// size than the shape needs. Requires: block_type(tensor.layout) is not null.
void check_block_parts(const Tensor& tensor);

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, HeldBlob data);

}  // namespace poise
