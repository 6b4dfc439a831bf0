// Numbers with a scale for each block of a matrix (block_scaled.cpp describes the parts).
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kBlockScaled = "poise.block_scaled/1";

struct BlockShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

// Returns the layout, and the attributes that describe it. Requires: neither is 0.
TensorLayout block_scaled_layout(const BlockShape& shape);
Attributes block_scaled_attributes(const BlockShape& shape);
// Returns the shape of a block of such a tensor.
const BlockShape& block_scaled_shape(const Tensor& tensor);

// Throws invalid_file (without path) naming tensor and part where parts do not fit the shape. Requires: such a tensor.
void check_block_scaled(const Tensor& tensor);

}  // namespace poise
