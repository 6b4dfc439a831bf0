// Sums of a thin matrix's rows with weights. They are the product of two thin matrices, row by row, which is added to
// the rows of a third one. This is a vector loop, chosen at run time for the processor.
#pragma once

#include <cstddef>

namespace poise {

// Columns of a strip. Vector registers hold this many sums.
inline constexpr std::size_t kStrip = 32;

// Adds to each of the first `rows` of out[r] [strips * kStrip] the sum over k of weights[r][k] * (element k of the
// column), one product after the other in the order of k: product and sum are rounded to float32 each. `strips` is
// [strips, rank, kStrip]: the columns of the thin matrix, strip by strip. Requires: one row or two.
void add_strips(float* const* out, const float* const* weights, std::size_t rows, std::size_t rank, const float* strips,
                std::size_t count);

}  // namespace poise
