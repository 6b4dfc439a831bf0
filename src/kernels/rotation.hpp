// Computes rotary position embeddings (RoPE). Among the rotated numbers of a head, element i of the first half and
// element i of the second half are a pair. The pair is rotated by the angle position * frequencies[i].
//
// A const Rotation is safe to use from many threads.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

class Rotation {
 public:
  // Holds cosines and sines of the angles of consecutive positions; both are [positions, frequencies].
  struct Angles {
    std::vector<float> cosines;
    std::vector<float> sines;
  };

  // apply() rotates the first 2 * frequencies.size() numbers of a head and scales them by `factor`. Requires: head_size
  // is at least 2 * frequencies.size().
  Rotation(std::size_t head_size, std::vector<float> frequencies, float factor = 1.0F);

  // Computes the cosines and sines, times `factor`, for positions [position, position + tokens).
  void compute_angles(std::size_t position, std::size_t tokens, Angles& angles) const;

  // Rotates, in place, the `heads` heads that follow each other from x on, by the angles of position t in `angles`.
  void apply(const Angles& angles, std::size_t t, std::size_t heads, float* x) const;

 private:
  std::size_t head_size_;
  std::vector<float> frequencies_;
  float factor_;
};

}  // namespace poise
