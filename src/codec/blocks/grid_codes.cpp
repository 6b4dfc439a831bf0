// Decodes IQ1_S to IQ3_S, whose codes are indices into a table of points: the coordinates of eight or four neighbours.
#include "codec/blocks/codecs.hpp"
#include "codec/blocks/grids.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/grid_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;

// Expands eight bits to bytes: a set bit means minus and becomes 0xff.
constexpr auto kSigns = [] {
  std::array<std::uint64_t, 256> signs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t i = 0; i < 8; ++i) signs[byte] |= std::uint64_t{(byte >> i & 1) * 0xff} << (8 * i);
  }
  return signs;
}();

// Expands seven signs to eight. The eighth makes the number of minus signs even.
constexpr auto kEvenSigns = [] {
  std::array<std::uint64_t, 128> signs{};
  for (std::size_t seven = 0; seven < 128; ++seven)
    signs[seven] = kSigns[seven | (static_cast<std::size_t>(std::popcount(seven)) & 1) << 7];
  return signs;
}();

// Applies signs to eight nonzero coordinates.
HWY_INLINE std::uint64_t ApplySigns(std::uint64_t point, std::uint64_t signs) {
  return (point ^ signs) + (signs & 0x0101010101010101U);
}

// Joins two points of four coordinates.
HWY_INLINE std::uint64_t JoinPoints(std::uint32_t first, std::uint32_t second) {
  return first | std::uint64_t{second} << 32;
}

HWY_INLINE std::size_t GetIndex(const std::byte* bytes, std::size_t i) {
  return std::to_integer<std::size_t>(bytes[i]);
}

// A block has, by offset, 0: a factor; 2: for each 32 elements four indices of a byte, then 32 bits: four times seven
// signs, and four bits of the scale.
void DecodeIq2_Xxs(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  for (; count > 0; --count, block += 66, out += kElements) {
    const float factor = load_half(block);
    for (std::size_t group = 0; group < 8; ++group) {
      const std::byte* const indices = block + 2 + 8 * group;
      const auto signs = load_le<std::uint32_t>(indices + 4);
      scales[group] = factor * (0.5F + static_cast<float>(signs >> 28)) * 0.25F;
      for (std::size_t i = 0; i < 4; ++i) {
        store_le(codes + 32 * group + 8 * i,
                 ApplySigns(kGridIq2Xxs[GetIndex(indices, i)], kEvenSigns[signs >> (7 * i) & 127U]));
      }
    }
    Scale<32, kElements>(codes, scales, out);
  }
}

// Computes the scales of sixteen groups from codes of four bits: factor * (0.5 + code) / 4.
HWY_INLINE void ReadHalfStepScales(float factor, const std::byte* from, float* scales) {
  for (std::size_t i = 0; i < 8; ++i) {
    const auto pair = std::to_integer<unsigned>(from[i]);
    scales[2 * i] = factor * (0.5F + static_cast<float>(pair & 15U)) * 0.25F;
    scales[2 * i + 1] = factor * (0.5F + static_cast<float>(pair >> 4)) * 0.25F;
  }
}

// A block has, by offset, 0: a factor; 2: for each eight elements nine bits of an index and seven signs; 66: scales.
void DecodeIq2_Xs(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[16];
  for (; count > 0; --count, block += 74, out += kElements) {
    ReadHalfStepScales(load_half(block), block + 66, scales);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t code = load_le<std::uint16_t>(block + 2 + 2 * i);
      store_le(codes + 8 * i, ApplySigns(kGridIq2Xs[code & 511], kEvenSigns[code >> 9]));
    }
    Scale<16, kElements>(codes, scales, out);
  }
}

// A block has, by offset, 0: a factor; 2: low bytes of 32 indices; 34: signs; 66: for each four indices a byte with
// their high two bits; 74: scales.
void DecodeIq2_S(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[16];
  for (; count > 0; --count, block += 82, out += kElements) {
    ReadHalfStepScales(load_half(block), block + 74, scales);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t index = GetIndex(block, 2 + i) | (GetIndex(block, 66 + i / 4) >> (2 * (i % 4)) & 3) << 8;
      store_le(codes + 8 * i, ApplySigns(kGridIq2S[index], kSigns[GetIndex(block, 34 + i)]));
    }
    Scale<16, kElements>(codes, scales, out);
  }
}

// A block has, by offset, 0: a factor; 2: 64 indices; 66: for each 32 elements 32 bits: four times seven signs, and
// four bits of the scale.
void DecodeIq3_Xxs(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  for (; count > 0; --count, block += 98, out += kElements) {
    const float factor = load_half(block);
    for (std::size_t group = 0; group < 8; ++group) {
      const std::byte* const indices = block + 2 + 8 * group;
      const auto signs = load_le<std::uint32_t>(block + 66 + 4 * group);
      scales[group] = factor * (0.5F + static_cast<float>(signs >> 28)) * 0.5F;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::uint64_t points =
            JoinPoints(kGridIq3Xxs[GetIndex(indices, 2 * i)], kGridIq3Xxs[GetIndex(indices, 2 * i + 1)]);
        store_le(codes + 32 * group + 8 * i, ApplySigns(points, kEvenSigns[signs >> (7 * i) & 127U]));
      }
    }
    Scale<32, kElements>(codes, scales, out);
  }
}

// A block has, by offset, 0: a factor; 2: low bytes of 64 indices; 66: for each eight indices a byte with their high
// bits; 74: signs; 106: scales of 32 elements, four bits each.
void DecodeIq3_S(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  for (; count > 0; --count, block += 110, out += kElements) {
    const float factor = load_half(block);
    for (std::size_t group = 0; group < 8; ++group) {
      const std::byte* const indices = block + 2 + 8 * group;
      const std::size_t high = GetIndex(block, 66 + group);
      scales[group] =
          factor *
          static_cast<float>(static_cast<int>(1 + 2 * (GetIndex(block, 106 + group / 2) >> (4 * (group % 2)) & 15)));
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t first = GetIndex(indices, 2 * i) | (high >> (2 * i) & 1) << 8;
        const std::size_t second = GetIndex(indices, 2 * i + 1) | (high >> (2 * i + 1) & 1) << 8;
        store_le(codes + 32 * group + 8 * i, ApplySigns(JoinPoints(kGridIq3S[first], kGridIq3S[second]),
                                                        kSigns[GetIndex(block, 74 + 4 * group + i)]));
      }
    }
    Scale<32, kElements>(codes, scales, out);
  }
}

// Returns an eighth, negative if bit 3 is set.
HWY_INLINE float GetSignedEighth(std::size_t bits) {
  return std::bit_cast<float>(0x3e000000U | static_cast<std::uint32_t>(bits & 8) << 28);
}
HWY_INLINE float ComputeOddScale(float factor, std::size_t code) {
  return factor * static_cast<float>(static_cast<int>(2 * (code & 7) + 1));
}

// A block has, by offset, 0: a factor; 2: low bytes of 32 indices; 34: for each 32 elements 16 bits: four times the
// high three bits of an index, three bits of the scale, and the sign of an eighth that is added to the coordinates.
void DecodeIq1_S(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  HWY_ALIGN float shifts[8];
  for (; count > 0; --count, block += 50, out += kElements) {
    const float factor = load_half(block);
    for (std::size_t group = 0; group < 8; ++group) {
      const std::size_t high = load_le<std::uint16_t>(block + 34 + 2 * group);
      scales[group] = ComputeOddScale(factor, high >> 12);
      shifts[group] = GetSignedEighth(high >> 12);
      for (std::size_t i = 0; i < 4; ++i)
        store_le(codes + 32 * group + 8 * i, kGridIq1[GetIndex(block, 2 + 4 * group + i) | (high >> (3 * i) & 7) << 8]);
    }
    ScaleAndAdd<32, kElements, true>(codes, scales, shifts, out);
  }
}

// A block has, by offset, 0: low bytes of 32 indices; 32: for each index half a byte: its high three bits, and the sign
// of an eighth that is added to the coordinates; 48: four times 16 bits: four scales of 16 elements, three bits each,
// and four bits of the factor.
void DecodeIq1_M(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[32];
  HWY_ALIGN float shifts[32];
  for (; count > 0; --count, block += 56, out += kElements) {
    const auto words = load_le<std::uint64_t>(block + 48);
    const auto half = static_cast<std::uint16_t>((words >> 12 & 0xfU) | (words >> 24 & 0xf0U) | (words >> 36 & 0xf00U) |
                                                 (words >> 48 & 0xf000U));
    const float factor = convert_half(half);
    for (std::size_t i = 0; i < 16; ++i)
      scales[2 * i] = scales[2 * i + 1] = ComputeOddScale(factor, words >> (16 * (i / 4) + 3 * (i % 4)));
    for (std::size_t i = 0; i < 32; i += 2) {
      const std::size_t both = GetIndex(block, 32 + i / 2);
      shifts[i] = GetSignedEighth(both);
      shifts[i + 1] = GetSignedEighth(both >> 4);
      store_le(codes + 8 * i, kGridIq1[GetIndex(block, i) | (both & 7) << 8]);
      store_le(codes + 8 * i + 8, kGridIq1[GetIndex(block, i + 1) | (both >> 4 & 7) << 8]);
    }
    ScaleAndAdd<8, kElements, true>(codes, scales, shifts, out);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_DECODER(decode_iq1_s, DecodeIq1_S)
POISE_EXPORT_DECODER(decode_iq1_m, DecodeIq1_M)
POISE_EXPORT_DECODER(decode_iq2_xxs, DecodeIq2_Xxs)
POISE_EXPORT_DECODER(decode_iq2_xs, DecodeIq2_Xs)
POISE_EXPORT_DECODER(decode_iq2_s, DecodeIq2_S)
POISE_EXPORT_DECODER(decode_iq3_xxs, DecodeIq3_Xxs)
POISE_EXPORT_DECODER(decode_iq3_s, DecodeIq3_S)

}  // namespace poise
#endif
