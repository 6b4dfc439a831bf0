// Lists the fields of ggml's blocks: scales, codes and their high bits. A field is an array of numbers in the block.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <poise/dtype.hpp>

#include "codec/block_type.hpp"

namespace poise {

struct BlockField {
  std::string_view name;  // the name in ggml's struct: "d" is a scale, "qs" are codes, "qh" high bits of codes
  DType dtype;
  std::size_t count;  // how many numbers a block has in this field
};

// Returns the fields in their order. They follow each other without padding.
std::span<const BlockField> list_block_fields(const BlockType& type);

}  // namespace poise
