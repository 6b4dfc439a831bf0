#include "kernels/rotation.hpp"

#include <cmath>
#include <utility>

namespace poise {

Rotation::Rotation(std::size_t head_size, std::vector<float> frequencies, float factor)
    : head_size_(head_size), frequencies_(std::move(frequencies)), factor_(factor) {}

void Rotation::compute_angles(std::size_t position, std::size_t tokens, Angles& angles) const {
  const std::size_t half = frequencies_.size();
  angles.cosines.resize(tokens * half);
  angles.sines.resize(tokens * half);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < half; ++i) {
      // Training computes this product in float32, too.
      const float angle = static_cast<float>(position + t) * frequencies_[i];
      angles.cosines[t * half + i] = static_cast<float>(std::cos(static_cast<double>(angle))) * factor_;
      angles.sines[t * half + i] = static_cast<float>(std::sin(static_cast<double>(angle))) * factor_;
    }
  }
}

void Rotation::apply(const Angles& angles, std::size_t t, std::size_t heads, float* x) const {
  const std::size_t half = frequencies_.size();
  const float* cosines = angles.cosines.data() + t * half;
  const float* sines = angles.sines.data() + t * half;
  for (std::size_t head = 0; head < heads; ++head, x += head_size_) {
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[i];
      const float b = x[i + half];
      x[i] = a * cosines[i] - b * sines[i];
      x[i + half] = b * cosines[i] + a * sines[i];
    }
  }
}

}  // namespace poise
