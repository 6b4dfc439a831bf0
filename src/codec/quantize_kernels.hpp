// The vector loops of views that quantize, chosen at run time for the processor.
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
  // The largest magnitude as bits, which sort like the magnitudes; the bits of numbers that are not finite come last.
  std::uint32_t largest = 0;
  float min;  // undefined if something is not finite
  float max;

  void merge(const Extremes& other);
};

// Requires: count is more than 0.
Extremes find_extremes(const float* in, std::size_t count);

// Holds the range of codes.
struct CodeRange {
  int lowest = 0;
  int highest = 0;
  int zero = 0;  // added at the end
};

// Encodes code = round-half-even(x / delta), clamped to [lowest, highest], + zero: its low byte, one for each. Returns
// the loss. Requires: x are finite, delta > 0.
QuantizationError quantize_linear(const float* in, std::size_t count, float delta, const CodeRange& range,
                                  std::byte* codes);

// Holds the least and the greatest number of a group; undefined if something is not finite.
struct Range {
  float min;
  float max;
};

// Finds the ranges of consecutive groups of one size; returns the largest magnitude of all numbers, as bits.
// Requires: in.size() is a multiple of ranges.size(), neither is zero.
std::uint32_t find_ranges(std::span<const float> in, std::span<Range> ranges);

// Says how a group's numbers become codes from 0 on.
struct GroupFactor {
  float factor;
  int zero;
};

// Does quantize_linear() for consecutive groups of one size, with lowest = -zero and highest = largest_code - zero.
// Requires: x are finite, factors are positive float16 numbers, in.size() is a multiple of factors.size(), neither is
// zero.
QuantizationError quantize_groups_linear(std::span<const float> in, std::span<const GroupFactor> factors,
                                         int largest_code, std::byte* codes);

// Adds the loss of a number that another one replaces, without counting the number.
inline void add_loss(QuantizationError& error, double number, double lost) {
  error.worst = std::max(error.worst, std::abs(lost));
  error.squared_error += lost * lost;
  error.squared_values += number * number;
}

// Measures the loss where other numbers replace `in`: differences are float32, squares and their sums float64.
QuantizationError measure_loss(const float* in, const float* decoded, std::size_t count);

// Packs two codes to a byte, the even one in the low half; `out` may equal `codes`. An odd last code gets a zero as its
// neighbour.
void pack_nibbles(const std::byte* codes, std::size_t count, std::byte* out);

}  // namespace poise
