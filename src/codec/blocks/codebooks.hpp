// Defines the tables of sixteen numbers that the codes of IQ4_NL, IQ4_XS, MXFP4 and NVFP4 stand for, and decodes the
// scales of MXFP4 and NVFP4.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace poise {

// Has ggml's kvalues_iq4nl, copied from llama.cpp v0.5.0 (MIT License, see docs/notices.md).
inline constexpr std::array<std::int8_t, 16> kIq4Numbers = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                            1,    13,   25,  38,  53,  69,  89,  113};

// Has the numbers of the 4-bit float E2M1 times 2, because these are integers.
inline constexpr std::array<std::int8_t, 16> kFp4Numbers = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Returns 2^(exponent - 128): half of E8M0's value, because kFp4Numbers are twice E2M1's numbers. 255 gives 2^127, not
// NaN.
constexpr float decode_mxfp4_scale(unsigned exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23);
}

// Returns half of the E4M3 number in the low seven bits, because kFp4Numbers are twice E2M1's numbers. Ignores the sign
// bit. As in ggml, 0x7f gives 0, not NaN, and 0xff gives 240.
constexpr float decode_nvfp4_scale(unsigned code) {
  if (code == 0x7f) return 0;
  const unsigned exponent = code >> 3 & 15U;
  const auto mantissa = static_cast<float>(code & 7U);
  if (exponent == 0) return mantissa * 0x1p-10F;
  return (8 + mantissa) * std::bit_cast<float>((exponent + 127 - 11) << 23);
}

}  // namespace poise
