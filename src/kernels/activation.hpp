// Functions of each number of a layer: norms, and activations between the products of a feed-forward network, of one
// number or of two (gated).
#pragma once

#include <cstddef>
#include <span>

namespace poise {

// Computes in place x / (1 + exp(-x)).
void silu(float* x, std::size_t count);
void silu_product(float* gate, const float* up, std::size_t count);

// Computes in place the approximation by tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
void gelu_tanh(float* x, std::size_t count);
void gelu_tanh_product(float* gate, const float* up, std::size_t count);

// Computes in place x / 2 * (1 + erf(x / sqrt(2))).
void gelu(float* x, std::size_t count);
void gelu_product(float* gate, const float* up, std::size_t count);

// Computes in place max(x, 0).
void relu(float* x, std::size_t count);
void relu_product(float* gate, const float* up, std::size_t count);

// gpt-oss: g / (1 + exp(-1.702 g)) * (u + 1), where g is at most 7 and u from -7 to 7
inline constexpr float kClampedLimit = 7.0F;
inline constexpr float kClampedGain = 1.702F;
void clamped_swiglu(float* gate, const float* up, std::size_t count);

// Computes in place cap * tanh(x / cap). NaN stays NaN.
void soft_cap(float* x, std::size_t count, float cap);

// Computes out [tokens, weight.size()] = x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out);

// Computes out [tokens, weight.size()] = (x - mean) / sqrt(variance + eps) * weight + bias
void layer_norm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                float eps, float* out);

}  // namespace poise
