// Adds the product of two thin matrices, such as those of a LoRA adapter, to rows of a third matrix. The vector loop is
// chosen at run time for the processor. A strip is kStrip neighbouring columns of the second thin matrix.
#pragma once

#include <cstddef>

namespace poise {

// The columns of a strip. Vector registers hold the sums of one strip.
inline constexpr std::size_t kStrip = 32;

// Adds to out[r] [count * kStrip], for each r below `rows`, the sum over k of weights[r][k] * (element k of the
// column). The products are added one after the other in the order of k; product and sum are each rounded to float32.
// `strips` is [count, rank, kStrip]. Requires: `rows` is 1 or 2.
void add_strips(float* const* out, const float* const* weights, std::size_t rows, std::size_t rank, const float* strips,
                std::size_t count);

}  // namespace poise
