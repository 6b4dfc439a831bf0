// Codes of four bits that index a codebook (codebook.cpp describes the parts).
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kCodebook = "poise.codebook/1";

// Returns the layout, and the attributes that describe it, for blocks of `block` elements. Requires: block > 0.
TensorLayout codebook_layout(std::uint64_t block);
Attributes codebook_attributes(std::uint64_t block);
// Returns the block of such a tensor.
std::uint64_t codebook_block(const Tensor& tensor);

// Throws invalid_file (without path) naming tensor and part where parts do not fit the shape. Requires: such a tensor.
void check_codebook(const Tensor& tensor);

}  // namespace poise
