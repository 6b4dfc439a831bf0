// Rotary embedding: in the part of a head that turns, element i of the first half turns with element i of the second,
// by position * frequency[i].
//
// A const Rotation is safe to use from many threads.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

class Rotation {
 public:
  // Of consecutive positions; both [positions, frequencies].
  struct Angles {
    std::vector<float> cosines;
    std::vector<float> sines;
  };

  // The first 2 * frequencies.size() numbers of a head turn, and become `factor` times as long. Requires: a head has
  // that many.
  Rotation(std::size_t head_size, std::vector<float> frequencies, float factor = 1.0F);

  // Those of positions [position, position + tokens).
  void prepare(std::size_t position, std::size_t tokens, Angles& angles) const;

  // Turns the `heads` heads at x, in place, to the t-th of the positions.
  void apply(const Angles& angles, std::size_t t, std::size_t heads, float* x) const;

 private:
  std::size_t head_size_;
  std::vector<float> frequencies_;
  float factor_;
};

}  // namespace poise
