// Adds the product of two thin matrices, such as those of a LoRA adapter, to rows of a third matrix. Highway chooses
// the vector loop for the processor at run time. A strip is kStrip neighbouring columns of the second thin matrix.
#pragma once

#include <cstddef>

namespace poise {

inline constexpr std::size_t kStrip = 32;

// For each r below `rows` and each column c, adds to out[r][c] the sum over k of weights[r][k] * (element k of column
// c). Adds the products one by one in the order of k, and rounds each product and each sum to float32. `strips` is
// [count, rank, kStrip]; out[r] has count * kStrip numbers. Requires: `rows` is 1 or 2.
void add_strips(float* const* out, const float* const* weights, std::size_t rows, std::size_t rank, const float* strips,
                std::size_t count);

}  // namespace poise
