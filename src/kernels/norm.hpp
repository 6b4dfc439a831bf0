// Norms: scale each token's numbers to a common size. Sums are float64, in an order that depends on the processor.
#pragma once

#include <cstddef>
#include <span>

namespace poise {

// Computes out [tokens, weight.size()] = x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out);

// Computes out [tokens, weight.size()] = (x - mean) / sqrt(variance + eps) * weight + bias
void layer_norm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                float eps, float* out);

}  // namespace poise
