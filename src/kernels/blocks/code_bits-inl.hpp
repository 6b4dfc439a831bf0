// Bits of bytes in vectors: how codes of few bits are unpacked.
#if defined(POISE_KERNELS_CODE_BITS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_CODE_BITS
#undef POISE_KERNELS_CODE_BITS
#else
#define POISE_KERNELS_CODE_BITS
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "kernels/blocks/block_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Four bits of each byte.
HWY_INLINE Codes LowHalf(Codes codes) { return hn::And(codes, hn::Set(CodeTag(), 15)); }
HWY_INLINE Codes HighHalf(Codes codes) { return hn::ShiftRight<4>(codes); }

// 32 codes of four bits with one scale, two a byte: the even column has the low half.
template <class Into>
HWY_INLINE void MultiplyNibblePairs(Into& sums, Codes pairs) {
  const Codes low = LowHalf(pairs);
  const Codes high = HighHalf(pairs);
  sums.multiply32(hn::InterleaveLower(CodeTag(), low, high), hn::InterleaveUpper(CodeTag(), low, high), 0);
}

// Returns the bits of `mask` in each byte shifted by kBits, to the left if that is positive. Requires: they stay within
// the byte.
template <int kBits>
HWY_INLINE Codes MaskedShift(Codes codes, int mask) {
  const hn::Repartition<std::uint16_t, CodeTag> words;
  const auto bits = hn::And(codes, hn::Set(CodeTag(), static_cast<std::uint8_t>(mask)));
  if constexpr (kBits == 0) return bits;
  if constexpr (kBits > 0) return hn::BitCast(CodeTag(), hn::ShiftLeft<kBits>(hn::BitCast(words, bits)));
  if constexpr (kBits < 0) return hn::BitCast(CodeTag(), hn::ShiftRight<-kBits>(hn::BitCast(words, bits)));
}

// 0xff in byte i of sixteen where bit i of two bytes is 1: bytes kFirst and kSecond of the sixteen of a row.
template <std::uint8_t kFirst, std::uint8_t kSecond>
HWY_INLINE Codes SpreadBits(Codes bytes) {
  alignas(16) static constexpr std::uint8_t kPlaces[16] = {kFirst,  kFirst,  kFirst,  kFirst,  kFirst,  kFirst,
                                                           kFirst,  kFirst,  kSecond, kSecond, kSecond, kSecond,
                                                           kSecond, kSecond, kSecond, kSecond};
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto bits = hn::LoadDup128(CodeTag(), kBits);
  const auto spread = hn::TableLookupBytes(bytes, hn::LoadDup128(CodeTag(), kPlaces));
  return hn::VecFromMask(CodeTag(), hn::Eq(hn::And(spread, bits), bits));
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
