// The vector loops behind quantize.cpp and scale_search.cpp, chosen for the processor at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/stored_type.hpp>

namespace poise {

// What the scale of a tensor depends on.
struct Extremes {
  std::uint32_t largest = 0;  // magnitude, as bits: they sort as the magnitudes do, and those that are not finite come last
  float min;                  // of no meaning where something is not finite
  float max;

  void merge(const Extremes& other);
};

// Requires: count > 0.
Extremes find_extremes(const float* in, std::size_t count);

// The codes that numbers may become.
struct CodeRange {
  int lowest = 0;
  int highest = 0;
  int zero = 0;  // added to each in the end
};

// code = round-half-even(x / delta), clamped to [lowest, highest], + zero: the low byte of that, one to a byte. Returns what
// is lost. Requires: x are finite, delta > 0.
QuantizationError quantize_linear(const float* in, std::size_t count, float delta, const CodeRange& range, std::byte* codes);

// Two codes to a byte, the even one in the low half, which may be where the codes are; a last one alone gets a zero beside
// it.
void pack_nibbles(const std::byte* codes, std::size_t count, std::byte* out);

}  // namespace poise
