#include "kernels/norm.hpp"

#include <cmath>

namespace poise {

void rms_norm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out) {
  const std::size_t size = weight.size();
  for (std::size_t t = 0; t < tokens; ++t, x += size, out += size) {
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const auto factor =
        static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(eps)));
    for (std::size_t i = 0; i < size; ++i) out[i] = x[i] * factor * weight[i];
  }
}

void layer_norm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                float eps, float* out) {
  const std::size_t size = weight.size();
  for (std::size_t t = 0; t < tokens; ++t, x += size, out += size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += static_cast<double>(x[i]);
    const double mean = sum / static_cast<double>(size);
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i)
      squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(eps));
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * factor) * weight[i] + bias[i];
  }
}

}  // namespace poise
