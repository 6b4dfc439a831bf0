// Computes the activation functions and the norms of a layer. A gated activation combines two products of a
// feed-forward network: f(gate) * up.
#pragma once

#include <cstddef>
#include <span>

namespace poise {

// Each gate_with_...() computes gate[i] = f(gate[i]) * up[i], where f is the apply_...() above it.

// Computes in place x / (1 + exp(-x)).
void apply_silu(float* x, std::size_t count);
void gate_with_silu(float* gate, const float* up, std::size_t count);

// Computes in place the approximation of apply_gelu() by tanh:
// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
void apply_gelu_tanh(float* x, std::size_t count);
void gate_with_gelu_tanh(float* gate, const float* up, std::size_t count);

// Computes in place x / 2 * (1 + erf(x / sqrt(2))).
void apply_gelu(float* x, std::size_t count);
void gate_with_gelu(float* gate, const float* up, std::size_t count);

// Computes in place max(x, 0).
void apply_relu(float* x, std::size_t count);
void gate_with_relu(float* gate, const float* up, std::size_t count);

// apply_clamped_swiglu() uses these constants.
inline constexpr float kClampedLimit = 7.0F;
inline constexpr float kClampedGain = 1.702F;
// Computes, for gpt-oss, gate[i] = g / (1 + exp(-1.702 g)) * (u + 1), where g is gate[i] limited to at most 7 and u is
// up[i] limited to -7 to 7.
void apply_clamped_swiglu(float* gate, const float* up, std::size_t count);

// Computes in place cap * tanh(x / cap). NaN stays NaN.
void apply_soft_cap(float* x, std::size_t count, float cap);

// Computes the RMS norm of each row of x [tokens, weight.size()]: out = x / sqrt(mean(x^2) + eps) * weight.
void compute_rms_norm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out);

// Computes the layer norm of each row of x [tokens, weight.size()]: out = (x - mean) / sqrt(variance + eps) * weight +
// bias.
void compute_layer_norm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                        float eps, float* out);

}  // namespace poise
