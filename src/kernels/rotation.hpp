// Rotary embedding: rotates element i of the first half of a head's rotated part with element i of the second, by
// position * frequency[i].
//
// A const Rotation is safe to use from many threads.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

class Rotation {
 public:
  // Holds the angles of consecutive positions; both are [positions, frequencies].
  struct Angles {
    std::vector<float> cosines;
    std::vector<float> sines;
  };

  // Rotates the first 2 * frequencies.size() numbers of a head and scales them by `factor`. Requires: a head has that
  // many.
  Rotation(std::size_t head_size, std::vector<float> frequencies, float factor = 1.0F);

  // Computes the cosines and sines for positions [position, position + tokens).
  void compute_angles(std::size_t position, std::size_t tokens, Angles& angles) const;

  // Rotates the `heads` heads at x, in place, to the t-th of the positions.
  void apply(const Angles& angles, std::size_t t, std::size_t heads, float* x) const;

 private:
  std::size_t head_size_;
  std::vector<float> frequencies_;
  float factor_;
};

}  // namespace poise
