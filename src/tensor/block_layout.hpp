// Describes tensors of ggml's blocks (codec/block_type.hpp): they have one part, "data", of u8. Each row, or each
// column of a matrix, is a run of whole blocks.
//
// The layout is named `gguf.<type>/1` (as in zTensor 2) if blocks lie along rows, `poise.<type>.columns/1` if they lie
// along columns. The shape counts elements.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/tensor.hpp>

#include "codec/block_type.hpp"

namespace poise {

// Names the direction of blocks: along the rows of a tensor, or along the columns of a matrix. With columns, the bytes
// are those of the transposed matrix, as llama.cpp stores the matrices of GPT-2.
enum class BlocksAlong : std::uint8_t { rows, columns };

// Requires: `type` is a row of list_block_types().
TensorLayout make_block_layout(const BlockType& type, BlocksAlong along = BlocksAlong::rows);

// Returns the type of the blocks; null for other layouts.
const BlockType* get_block_type(const TensorLayout& layout);
BlocksAlong get_block_direction(const TensorLayout& layout);  // rows for layouts without blocks

// Returns the layout of that name; std::nullopt if it is not a layout of blocks.
std::optional<TensorLayout> find_block_layout(std::string_view name);

// Throws invalid_file (without path) unless "data" is the only part, is u8, and has the size that the shape needs, and
// the rows or columns are whole blocks. Reads no data. Requires: get_block_type(tensor.layout) is not null.
void check_block_parts(const Tensor& tensor);

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, BlobPtr data);

}  // namespace poise
