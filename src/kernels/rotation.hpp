// Rotary embedding: element i of a head's first half turns with element i of its second half, by position * frequency[i].
//
// A const Rotation is safe to use from many threads.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

class Rotation {
 public:
  // Of consecutive positions; both [positions, half a head].
  struct Angles {
    std::vector<float> cosines;
    std::vector<float> sines;
  };

  // Frequency i is theta^(-2 i / head_size). Requires: head_size is even.
  Rotation(std::size_t head_size, float theta);

  // Those of positions [position, position + tokens).
  void prepare(std::size_t position, std::size_t tokens, Angles& angles) const;

  // Turns the `heads` heads at x, in place, to the t-th of the positions.
  void apply(const Angles& angles, std::size_t t, std::size_t heads, float* x) const;

 private:
  std::vector<float> frequencies_;  // of half a head
};

}  // namespace poise
