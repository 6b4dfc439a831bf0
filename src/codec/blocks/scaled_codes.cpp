// Decodes Q4_0 to Q8_0: 32 codes times a float16 scale of the block; Q4_1 and Q5_1 add a float16 minimum.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/scaled_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 32;

// Unpacks codes of four bits: code i is the low half of byte i, code 16 + i the high half.
struct Nibbles {
  Bytes16 low, high;

  explicit HWY_INLINE Nibbles(const std::byte* from)
      : low(Bytes16::load(from) & Bytes16::fill(15)), high(Bytes16::load(from).shift_right<4>()) {}
};

// Writes 16 to byte i if bit i of the 32 bits at `from` is set, else 0.
HWY_INLINE void ExpandFifthBits(const std::byte* from, std::uint8_t* out) {
  static constexpr auto kSpread = [] {
    std::array<std::uint64_t, 256> spread{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      for (std::size_t i = 0; i < 8; ++i) spread[byte] |= std::uint64_t{byte >> i & 1} << (8 * i + 4);
    }
    return spread;
  }();
  for (std::size_t i = 0; i < 4; ++i) store_le(out + 8 * i, kSpread[std::to_integer<std::size_t>(from[i])]);
}

void DecodeQ4_0(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  for (; count > 0; --count, block += 18, out += kElements) {
    const Nibbles nibbles(block + 2);
    (nibbles.low - Bytes16::fill(8)).store(codes);
    (nibbles.high - Bytes16::fill(8)).store(codes + 16);
    const float scale = load_half(block);
    Scale<kElements, kElements>(codes, &scale, out);
  }
}

void DecodeQ4_1(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  for (; count > 0; --count, block += 20, out += kElements) {
    const Nibbles nibbles(block + 4);
    nibbles.low.store(codes);
    nibbles.high.store(codes + 16);
    const float scale = load_half(block);
    const float min = load_half(block + 2);
    ScaleAndAdd<kElements, kElements>(codes, &scale, &min, out);
  }
}

void DecodeQ5_0(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN std::uint8_t fifth[kElements];
  for (; count > 0; --count, block += 22, out += kElements) {
    ExpandFifthBits(block + 2, fifth);
    const Nibbles nibbles(block + 6);
    ((nibbles.low | Bytes16::load(fifth)) - Bytes16::fill(16)).store(codes);
    ((nibbles.high | Bytes16::load(fifth + 16)) - Bytes16::fill(16)).store(codes + 16);
    const float scale = load_half(block);
    Scale<kElements, kElements>(codes, &scale, out);
  }
}

void DecodeQ5_1(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[kElements];
  HWY_ALIGN std::uint8_t fifth[kElements];
  for (; count > 0; --count, block += 24, out += kElements) {
    ExpandFifthBits(block + 4, fifth);
    const Nibbles nibbles(block + 8);
    (nibbles.low | Bytes16::load(fifth)).store(codes);
    (nibbles.high | Bytes16::load(fifth + 16)).store(codes + 16);
    const float scale = load_half(block);
    const float min = load_half(block + 2);
    ScaleAndAdd<kElements, kElements>(codes, &scale, &min, out);
  }
}

void DecodeQ8_0(const std::byte* block, std::size_t count, float* out) {
  for (; count > 0; --count, block += 34, out += kElements) {
    const float scale = load_half(block);
    Scale<kElements, kElements>(reinterpret_cast<const std::int8_t*>(block + 2), &scale, out);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_DECODER(decode_q4_0, DecodeQ4_0)
POISE_EXPORT_DECODER(decode_q4_1, DecodeQ4_1)
POISE_EXPORT_DECODER(decode_q5_0, DecodeQ5_0)
POISE_EXPORT_DECODER(decode_q5_1, DecodeQ5_1)
POISE_EXPORT_DECODER(decode_q8_0, DecodeQ8_0)

}  // namespace poise
#endif
