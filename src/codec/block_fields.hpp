// Lists the fields of ggml's blocks, such as scales, codes, and high bits of codes. A field is an array of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <poise/dtype.hpp>

#include "codec/block_type.hpp"

namespace poise {

struct BlockField {
  std::string_view name;  // the name in ggml's struct, such as "d" (a scale), "qs" (codes), "qh" (high bits of codes)
  DType dtype;
  std::size_t count;  // how many numbers a block has in this field
};

// Returns the fields in the order in which a block stores them. There is no padding between fields.
std::span<const BlockField> list_block_fields(const BlockType& type);

}  // namespace poise
