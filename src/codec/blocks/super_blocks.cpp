// Decodes Q2_K to Q6_K: 256 codes in groups of 16 or 32. The scale of a group, and its minimum if it has one, are a
// small integer times a float16 number of the block. Decodes Q8_K, too: 256 codes with one float32 scale.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/super_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;

// Reads codes of two bits: 32 neighbours are in bits 0 and 1 of 32 bytes, the next 32 in bits 2 and 3 of the same
// bytes, and so on. Calls use(i, the codes of elements [i, i + 16)).
template <typename Use>
HWY_INLINE void ReadTwoBitCodes(const std::byte* from, Use use) {
  const Bytes16 mask = Bytes16::fill(3);
  for (std::size_t half = 0; half < 2; ++half, from += 32) {
    for (std::size_t i = 0; i < 32; i += 16) {
      const Bytes16 four = Bytes16::load(from + i);
      use(128 * half + i, four & mask);
      use(128 * half + i + 32, four.shift_right<2>() & mask);
      use(128 * half + i + 64, four.shift_right<4>() & mask);
      use(128 * half + i + 96, four.shift_right<6>());
    }
  }
}

// A block has, by offset, 0: for each 16 elements a byte with their scale in the low half and their minimum in the high
// half; 16: codes of two bits; 80: the factor of the scales; 82: the factor of the minimums.
void DecodeQ2_K(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN std::int8_t factors[32];
  HWY_ALIGN float scales[16];
  HWY_ALIGN float offsets[16];
  for (; count > 0; --count, block += 84, out += kElements) {
    const Bytes16 both = Bytes16::load(block);
    (both & Bytes16::fill(15)).store(factors);
    both.shift_right<4>().store(factors + 16);
    const float scale = load_half(block + 80);
    const float min = -load_half(block + 82);
    Scale<16, 16>(factors, &scale, scales);
    Scale<16, 16>(factors + 16, &min, offsets);
    ReadTwoBitCodes(block + 16, [&](std::size_t i, Bytes16 sixteen) HWY_ATTR { sixteen.store(codes + i); });
    ScaleAndAdd<16, kElements>(codes, scales, offsets, out);
  }
}

// A block has, by offset, 0: the third bit of each code (32 neighbours have it in the same bit of 32 bytes); 32: the
// low two bits; 96: for each 16 elements a scale of six bits; 108: the factor of the scales.
void DecodeQ3_K(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN std::uint8_t high[kElements];
  HWY_ALIGN std::int8_t factors[16];
  HWY_ALIGN float scales[16];
  for (; count > 0; --count, block += 110, out += kElements) {
    // Byte i of the first eight holds the low four bits of scales i and 8 + i. Byte i of the next four holds the high
    // two bits of scales i, 4 + i, 8 + i and 12 + i.
    const auto low = load_le<std::uint64_t>(block + 96);
    const auto top = load_le<std::uint32_t>(block + 104);
    const std::uint64_t tops[2] = {(top & 0x03030303U) | std::uint64_t{top >> 2 & 0x03030303U} << 32,
                                   (top >> 4 & 0x03030303U) | std::uint64_t{top >> 6 & 0x03030303U} << 32};
    store_le(factors, (low & 0x0f0f0f0f0f0f0f0fU) | tops[0] << 4);
    store_le(factors + 8, (low >> 4 & 0x0f0f0f0f0f0f0f0fU) | tops[1] << 4);
    (Bytes16::load(factors) - Bytes16::fill(32)).store(factors);
    const float scale = load_half(block + 108);
    Scale<16, 16>(factors, &scale, scales);

    const Bytes16 four = Bytes16::fill(4);
    for (std::size_t i = 0; i < 32; i += 16) {
      const Bytes16 bits = Bytes16::load(block + i);
      (bits.shift_left<2>() & four).store(high + i);
      (bits.shift_left<1>() & four).store(high + i + 32);
      (bits & four).store(high + i + 64);
      (bits.shift_right<1>() & four).store(high + i + 96);
      (bits.shift_right<2>() & four).store(high + i + 128);
      (bits.shift_right<3>() & four).store(high + i + 160);
      (bits.shift_right<4>() & four).store(high + i + 192);
      (bits.shift_right<5>() & four).store(high + i + 224);
    }
    ReadTwoBitCodes(block + 32, [&](std::size_t i, Bytes16 sixteen)
                                    HWY_ATTR { ((sixteen | Bytes16::load(high + i)) - four).store(codes + i); });
    Scale<16, kElements>(codes, scales, out);
  }
}

// Decodes the first 16 bytes of Q4_K and Q5_K. By offset, these are 0: the factor of the scales; 2: the factor of the
// minimums; 4: twelve bytes with a scale and a minimum of six bits for each 32 elements. Bytes 0 to 3 of the twelve
// have scales 0 to 3 in their low six bits, bytes 4 to 7 have minimums 0 to 3 there. Bytes 8 to 11 have the low four
// bits of scales 4 to 7 in their low half, and those of minimums 4 to 7 in their high half. The highest two bits of
// bytes 0 to 3 are the high bits of scales 4 to 7, and those of bytes 4 to 7 are the high bits of minimums 4 to 7.
HWY_INLINE void ReadGroupScales(const std::byte* block, float* scales, float* offsets) {
  const auto first = load_le<std::uint64_t>(block + 4);
  const auto last = load_le<std::uint32_t>(block + 12);
  const std::uint64_t low = first & 0x3f3f3f3f3f3f3f3fU;  // scales 0 to 3, minimums 0 to 3
  const std::uint64_t high =
      (first >> 2 & 0x3030303030303030U) | (last & 0x0f0f0f0fU) | std::uint64_t{last >> 4 & 0x0f0f0f0fU} << 32;
  HWY_ALIGN std::int8_t factors[16];
  store_le(factors, static_cast<std::uint32_t>(low));
  store_le(factors + 4, static_cast<std::uint32_t>(high));
  store_le(factors + 8, static_cast<std::uint32_t>(low >> 32));
  store_le(factors + 12, static_cast<std::uint32_t>(high >> 32));
  const float scale = load_half(block);
  const float min = -load_half(block + 2);
  Scale<8, 8>(factors, &scale, scales);
  Scale<8, 8>(factors + 8, &min, offsets);
}

// A block has, at offset 16, codes of four bits: 32 neighbours are in the low halves of 32 bytes, the next 32 in the
// high halves.
void DecodeQ4_K(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  HWY_ALIGN float offsets[8];
  for (; count > 0; --count, block += 144, out += kElements) {
    ReadGroupScales(block, scales, offsets);
    for (std::size_t i = 0; i < 128; i += 16) {
      const Bytes16 pairs = Bytes16::load(block + 16 + i);
      std::int8_t* const to = codes + i / 32 * 64 + i % 32;
      (pairs & Bytes16::fill(15)).store(to);
      pairs.shift_right<4>().store(to + 32);
    }
    ScaleAndAdd<32, kElements>(codes, scales, offsets, out);
  }
}

// A block has, by offset, 16: the fifth bit of each code (32 neighbours have it in the same bit of 32 bytes); 48: the
// low four bits, as in Q4_K.
void DecodeQ5_K(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN float scales[8];
  HWY_ALIGN float offsets[8];
  const Bytes16 sixteen = Bytes16::fill(16);
  const Bytes16 nibble = Bytes16::fill(15);
  for (; count > 0; --count, block += 176, out += kElements) {
    ReadGroupScales(block, scales, offsets);
    for (std::size_t i = 0; i < 32; i += 16) {
      const Bytes16 bits = Bytes16::load(block + 16 + i);
      const Bytes16 fifth[8] = {bits.shift_left<4>() & sixteen,
                                bits.shift_left<3>() & sixteen,
                                bits.shift_left<2>() & sixteen,
                                bits.shift_left<1>() & sixteen,
                                bits & sixteen,
                                bits.shift_right<1>() & sixteen,
                                bits.shift_right<2>() & sixteen,
                                bits.shift_right<3>() & sixteen};
      for (std::size_t j = 0; j < 4; ++j) {
        const Bytes16 pairs = Bytes16::load(block + 48 + 32 * j + i);
        ((pairs & nibble) | fifth[2 * j]).store(codes + 64 * j + i);
        (pairs.shift_right<4>() | fifth[2 * j + 1]).store(codes + 64 * j + 32 + i);
      }
    }
    ScaleAndAdd<32, kElements>(codes, scales, offsets, out);
  }
}

// A block has, by offset, 0: the low four bits of the codes (64 neighbours are in the low halves of 64 bytes, the next
// 64 in the high halves); 128: the high two bits, as in Q2_K; 192: for each 16 elements a scale of eight bits; 208:
// the factor of the scales.
void DecodeQ6_K(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN std::uint8_t high[kElements];
  HWY_ALIGN float scales[16];
  for (; count > 0; --count, block += 210, out += kElements) {
    const float scale = load_half(block + 208);
    Scale<16, 16>(reinterpret_cast<const std::int8_t*>(block + 192), &scale, scales);
    ReadTwoBitCodes(block + 128,
                    [&](std::size_t i, Bytes16 sixteen) HWY_ATTR { sixteen.shift_left<4>().store(high + i); });
    for (std::size_t i = 0; i < 128; i += 16) {
      const Bytes16 pairs = Bytes16::load(block + i);
      const std::size_t to = i / 64 * 128 + i % 64;
      (((pairs & Bytes16::fill(15)) | Bytes16::load(high + to)) - Bytes16::fill(32)).store(codes + to);
      ((pairs.shift_right<4>() | Bytes16::load(high + to + 64)) - Bytes16::fill(32)).store(codes + to + 64);
    }
    Scale<16, kElements>(codes, scales, out);
  }
}

// A block has, by offset, 0: a float32 scale; 4: codes of eight bits; 260: the sum of each sixteen codes, which
// decoding does not need.
void DecodeQ8_K(const std::byte* block, std::size_t count, float* out) {
  for (; count > 0; --count, block += 292, out += kElements) {
    const auto scale = load_le<float>(block);
    Scale<kElements, kElements>(reinterpret_cast<const std::int8_t*>(block + 4), &scale, out);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_DECODER(decode_q2_k, DecodeQ2_K)
POISE_EXPORT_DECODER(decode_q3_k, DecodeQ3_K)
POISE_EXPORT_DECODER(decode_q4_k, DecodeQ4_K)
POISE_EXPORT_DECODER(decode_q5_k, DecodeQ5_K)
POISE_EXPORT_DECODER(decode_q6_k, DecodeQ6_K)
POISE_EXPORT_DECODER(decode_q8_k, DecodeQ8_K)

}  // namespace poise
#endif
