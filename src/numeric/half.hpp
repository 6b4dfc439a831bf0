// Converts float16 scales of blocks fast. Results are those of numeric/float_formats.hpp, except that a signaling NaN
// stays signaling.
#pragma once

#include <bit>
#include <cstdint>

#include "bytes/little_endian.hpp"

namespace poise {

inline float convert_half(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffU) << 13;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t bits = magnitude >= 0x0f800000U ? magnitude | 0x7f800000U : finite;
  return std::bit_cast<float>((half & 0x8000U) << 16 | bits);
}

inline float load_half(const std::byte* from) { return convert_half(load_le<std::uint16_t>(from)); }

// Rounds to nearest, ties to even. Every NaN becomes 0x7e00 with its sign.
inline std::uint16_t round_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00;
  } else if (magnitude >= 0x47800000U) {
    half = 0x7c00;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: the last bit of 0.5 + x has the value of float16's smallest
                                         // subnormal number
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    half = (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

inline void store_half(std::byte* to, float value) { store_le(to, round_to_half(value)); }

}  // namespace poise
