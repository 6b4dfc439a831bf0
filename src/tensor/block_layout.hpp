// Tensors of ggml's blocks: one part "data" of u8, in which each row is whole blocks of a type of codec/block_type.hpp.
//
// zTensor 2 names them `gguf.<type>/1`, and so does Poise; the shape counts elements.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/tensor.hpp>

#include "codec/block_type.hpp"

namespace poise {

// "gguf.q4_k/1"
std::string_view block_layout_name(const BlockType& type);

// Null: no type that Poise knows is called so.
const BlockType* block_type_of_layout(std::string_view name);

// The bytes of a tensor of that shape; nothing where rows are no whole blocks, or on overflow.
std::optional<std::uint64_t> block_bytes(const BlockType& type, const Shape& shape);

// Throws invalid_file (without path) naming tensor and part where the part is missing, not alone, no u8, or of another size than the shape needs.
// Requires: tensor.layout.blocks() is not null.
void check_block_parts(const Tensor& tensor);

Tensor make_blocks(std::string name, Shape shape, const BlockType& type, HeldBlob data);

}  // namespace poise
