// Decodes Q1_0, Q2_0, TQ1_0 and TQ2_0: codes of one or two bits or of one base 3 digit, times a float16 scale of the
// block.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/small_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/codes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// A block has, by offset, 0: a scale; 2: 128 signs, the first in the lowest bit: 1 is plus, 0 is minus.
void DecodeQ1_0(const std::byte* block, std::size_t count, float* out) {
  static constexpr auto kSigns = [] {
    std::array<std::uint64_t, 256> signs{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      for (std::size_t i = 0; i < 8; ++i) signs[byte] |= std::uint64_t{(byte >> i & 1) != 0 ? 0x01U : 0xffU} << (8 * i);
    }
    return signs;
  }();
  HWY_ALIGN std::int8_t codes[128];
  for (; count > 0; --count, block += 18, out += 128) {
    for (std::size_t i = 0; i < 16; ++i) store_le(codes + 8 * i, kSigns[std::to_integer<std::size_t>(block[2 + i])]);
    const float scale = load_half(block);
    Scale<128, 128>(codes, &scale, out);
  }
}

// A block has, by offset, 0: a scale; 2: 64 codes of two bits, the first in the lowest bits. The bits 0 to 3 stand for
// -1 to 2.
void DecodeQ2_0(const std::byte* block, std::size_t count, float* out) {
  static constexpr auto kFours = [] {
    std::array<std::uint32_t, 256> fours{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      for (std::size_t i = 0; i < 4; ++i)
        fours[byte] |= ((static_cast<std::uint32_t>(byte >> (2 * i) & 3) + 0xffU) & 0xffU) << (8 * i);
    }
    return fours;
  }();
  HWY_ALIGN std::int8_t codes[64];
  for (; count > 0; --count, block += 18, out += 64) {
    for (std::size_t i = 0; i < 16; ++i) store_le(codes + 4 * i, kFours[std::to_integer<std::size_t>(block[2 + i])]);
    const float scale = load_half(block);
    Scale<64, 64>(codes, &scale, out);
  }
}

// A byte is a fraction of five base 3 digits, times 256 and rounded up. Digit i is the integer part of byte / 256 *
// 3^(i + 1), modulo 3. The table has digits minus 1.
constexpr auto kDigits = [] {
  std::array<std::array<std::int8_t, 256>, 5> digits{};
  unsigned power = 1;
  for (auto& digit : digits) {
    for (unsigned byte = 0; byte < 256; ++byte)
      digit[byte] = static_cast<std::int8_t>(((byte * power & 255U) * 3 >> 8) - 1);
    power *= 3;
  }
  return digits;
}();

// A block has, by offset, 0: 32 bytes of five digits, where digit i of byte j is element 32 i + j; 32: 16 bytes of five
// digits (element 160 + 16 i + j); 48: four bytes of four digits (element 240 + 4 i + j); 52: a scale.
void DecodeTq1_0(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[256];
  for (; count > 0; --count, block += 54, out += 256) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(block);
    for (std::size_t digit = 0; digit < 5; ++digit) {
      for (std::size_t i = 0; i < 32; ++i) codes[32 * digit + i] = kDigits[digit][bytes[i]];
      for (std::size_t i = 0; i < 16; ++i) codes[160 + 16 * digit + i] = kDigits[digit][bytes[32 + i]];
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      for (std::size_t i = 0; i < 4; ++i) codes[240 + 4 * digit + i] = kDigits[digit][bytes[48 + i]];
    }
    const float scale = load_half(block + 52);
    Scale<256, 256>(codes, &scale, out);
  }
}

// A block has, by offset, 0: codes of two bits, -1 to 2, where 32 neighbours are in the same bits of 32 bytes; 64: a
// scale.
void DecodeTq2_0(const std::byte* block, std::size_t count, float* out) {
  HWY_ALIGN std::int8_t codes[256];
  const Bytes16 mask = Bytes16::fill(3);
  const Bytes16 one = Bytes16::fill(1);
  for (; count > 0; --count, block += 66, out += 256) {
    for (std::size_t i = 0; i < 64; i += 16) {
      const Bytes16 four = Bytes16::load(block + i);
      std::int8_t* const to = codes + i / 32 * 128 + i % 32;
      ((four & mask) - one).store(to);
      ((four.shift_right<2>() & mask) - one).store(to + 32);
      ((four.shift_right<4>() & mask) - one).store(to + 64);
      (four.shift_right<6>() - one).store(to + 96);
    }
    const float scale = load_half(block + 64);
    Scale<256, 256>(codes, &scale, out);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_DECODER(decode_q1_0, DecodeQ1_0)
POISE_EXPORT_DECODER(decode_q2_0, DecodeQ2_0)
POISE_EXPORT_DECODER(decode_tq1_0, DecodeTq1_0)
POISE_EXPORT_DECODER(decode_tq2_0, DecodeTq2_0)

}  // namespace poise
#endif
