// Quantizes numbers. Highway chooses the vector loops for the processor at run time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <poise/stored_type.hpp>

namespace poise {

// Holds the numbers that determine the scale of a tensor.
struct Extremes {
  // The bits of the largest magnitude. As integers, these bits have the order of the magnitudes; infinity and NaN come
  // last.
  std::uint32_t largest = 0;
  float min;  // min and max are undefined if a number is not finite
  float max;

  void merge(const Extremes& other);
};

// Requires: count is more than 0.
Extremes find_extremes(const float* in, std::size_t count);

// Describes how numbers become codes: they are clamped to [lowest, highest], and then `zero` is added.
struct CodeRange {
  int lowest = 0;
  int highest = 0;
  int zero = 0;
};

// Computes code = x / delta, rounded to nearest, ties to even, clamped to [lowest, highest], plus `zero`. Stores its
// low byte. Returns the loss. Requires: x are finite, delta > 0.
QuantizationError quantize_linear(const float* in, std::size_t count, float delta, const CodeRange& range,
                                  std::byte* codes);

// Holds the least and the greatest number of a group; undefined if a number is not finite.
struct GroupRange {
  float min;
  float max;
};

// Finds the ranges of consecutive groups of one size, and returns the bits of the largest magnitude
// (Extremes::largest). Requires: in.size() is a multiple of ranges.size(), neither is zero.
std::uint32_t find_group_ranges(std::span<const float> in, std::span<GroupRange> ranges);

// Describes how numbers of a group become codes: code = x / factor + zero.
struct GroupFactor {
  float factor;
  int zero;
};

// Quantizes consecutive groups of one size as quantize_linear() does, with lowest = -zero and highest = largest_code -
// zero. Requires: x are finite, factors are positive float16 numbers, in.size() is a multiple of factors.size(),
// neither is zero.
QuantizationError quantize_groups_linear(std::span<const float> in, std::span<const GroupFactor> factors,
                                         int largest_code, std::byte* codes);

// Adds the loss of `number` when `number` - `lost` replaces it. Does not change the count, error.values.
inline void add_loss(QuantizationError& error, double number, double lost) {
  error.worst = std::max(error.worst, std::abs(lost));
  error.squared_error += lost * lost;
  error.squared_values += number * number;
}

// Measures the loss when `decoded` replaces `in`. Differences are float32; their squares and sums are float64.
QuantizationError measure_loss(const float* in, const float* decoded, std::size_t count);

// Packs two codes into a byte, the even one in the low half; `out` may be the same memory as `codes`. If the count is
// odd, the last high half is 0.
void pack_nibbles(const std::byte* codes, std::size_t count, std::byte* out);

}  // namespace poise
