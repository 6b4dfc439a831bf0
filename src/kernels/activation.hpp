// Activations: what a feed-forward network does to each number between its products.
#pragma once

#include <cstddef>

namespace poise {

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
void silu_product(float* gate, const float* up, std::size_t count);

// In place, the approximation by tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
void gelu(float* x, std::size_t count);

}  // namespace poise
