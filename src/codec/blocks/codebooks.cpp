// Decodes IQ4_NL, IQ4_XS, MXFP4 and NVFP4, whose codes of four bits are indices into a table of sixteen numbers.
#include "codec/blocks/codebooks.hpp"

#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/codebooks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Looks up the numbers for 16 bytes of codes: first those of the low halves of the bytes, then those of the high
// halves.
HWY_INLINE void LookUp(Bytes16 book, const std::byte* from, std::int8_t* out) {
  const Bytes16 pairs = Bytes16::load(from);
  book.look_up(pairs & Bytes16::fill(15)).store(out);
  book.look_up(pairs.shift_right<4>()).store(out + 16);
}

// A block has, by offset, 0: a float16 scale; 2: 32 codes.
void DecodeIq4_Nl(const std::byte* block, std::size_t count, float* out) {
  const Bytes16 book = Bytes16::load(kIq4Numbers.data());
  HWY_ALIGN std::int8_t numbers[32];
  for (; count > 0; --count, block += 18, out += 32) {
    LookUp(book, block + 2, numbers);
    const float scale = load_half(block);
    Scale<32, 32>(numbers, &scale, out);
  }
}

// A block has, by offset, 0: a float16 factor; 2: the high two bits of eight scales; 4: their low four bits; 8: 256
// codes, 32 for each scale.
void DecodeIq4_Xs(const std::byte* block, std::size_t count, float* out) {
  const Bytes16 book = Bytes16::load(kIq4Numbers.data());
  HWY_ALIGN std::int8_t numbers[256];
  HWY_ALIGN float scales[8];
  for (; count > 0; --count, block += 136, out += 256) {
    const float factor = load_half(block);
    const unsigned high = load_le<std::uint16_t>(block + 2);
    const auto low = load_le<std::uint32_t>(block + 4);
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned scale = (low >> (4 * i) & 15U) | (high >> (2 * i) & 3U) << 4;
      scales[i] = factor * static_cast<float>(static_cast<int>(scale) - 32);
    }
    for (std::size_t i = 0; i < 8; ++i) LookUp(book, block + 8 + 16 * i, numbers + 32 * i);
    Scale<32, 256>(numbers, scales, out);
  }
}

// A block has, by offset, 0: the scale, an exponent of E8M0; 1: 32 codes.
void DecodeMxfp4(const std::byte* block, std::size_t count, float* out) {
  const Bytes16 book = Bytes16::load(kFp4Numbers.data());
  HWY_ALIGN std::int8_t numbers[32];
  for (; count > 0; --count, block += 17, out += 32) {
    LookUp(book, block + 1, numbers);
    const float scale = decode_mxfp4_scale(std::to_integer<unsigned>(block[0]));
    Scale<32, 32>(numbers, &scale, out);
  }
}

// A block has, by offset, 0: four scales of one byte; 4: 64 codes, 16 for each scale. The codes of a scale are the low
// halves of eight bytes, then their high halves.
void DecodeNvfp4(const std::byte* block, std::size_t count, float* out) {
  const Bytes16 book = Bytes16::load(kFp4Numbers.data());
  HWY_ALIGN std::int8_t numbers[64];
  HWY_ALIGN float scales[4];
  for (; count > 0; --count, block += 36, out += 64) {
    HWY_ALIGN std::uint8_t codes[64];
    for (std::size_t i = 0; i < 4; ++i) {
      scales[i] = decode_nvfp4_scale(std::to_integer<unsigned>(block[i]));
      const auto pairs = load_le<std::uint64_t>(block + 4 + 8 * i);
      store_le(codes + 16 * i, pairs & 0x0f0f0f0f0f0f0f0fU);
      store_le(codes + 16 * i + 8, pairs >> 4 & 0x0f0f0f0f0f0f0f0fU);
    }
    for (std::size_t i = 0; i < 64; i += 16) book.look_up(Bytes16::load(codes + i)).store(numbers + i);
    Scale<16, 64>(numbers, scales, out);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_DECODER(decode_iq4_nl, DecodeIq4_Nl)
POISE_EXPORT_DECODER(decode_iq4_xs, DecodeIq4_Xs)
POISE_EXPORT_DECODER(decode_mxfp4, DecodeMxfp4)
POISE_EXPORT_DECODER(decode_nvfp4, DecodeNvfp4)

}  // namespace poise
#endif
