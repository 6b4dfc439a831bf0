// float16 numbers as float32, once for each kind of processor.
#if defined(POISE_KERNELS_HALVES) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_HALVES
#undef POISE_KERNELS_HALVES
#else
#define POISE_KERNELS_HALVES
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the numbers whose bits are in `halves`. (On processors without the instruction, Highway 1.0.3 makes finite
// numbers of infinities.)
template <class D, class V>
HWY_INLINE hn::Vec<D> HalvesToFloats(D floats, V halves) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(floats, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
#else
  const hn::RebindToUnsigned<D> words;
  const hn::RebindToSigned<D> integers;
  const auto wide = hn::PromoteTo(words, halves);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(words, 0x7fff)));
  const auto finite = hn::BitCast(words, hn::Mul(hn::BitCast(floats, magnitude), hn::Set(floats, 0x1p112F)));
  const auto above = hn::RebindMask(words, hn::Gt(hn::BitCast(integers, magnitude), hn::Set(integers, 0x0f7fffff)));
  const auto bits = hn::IfThenElse(above, hn::Or(magnitude, hn::Set(words, 0x7f800000)), finite);
  return hn::BitCast(floats, hn::Or(bits, hn::ShiftLeft<16>(hn::And(wide, hn::Set(words, 0x8000)))));
#endif
}

// Returns the upper halves of words, rounded to the nearest, or to the even one: float32 numbers as bfloat16. Requires:
// none is NaN with only lower bits.
template <class D, class V>
HWY_INLINE V NearestUpperHalf(D words, V word) {
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(words, 1));
  return hn::ShiftRight<16>(hn::Add(word, hn::Add(hn::Set(words, 0x7fff), odd)));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Returns two vectors of float32 numbers as bfloat16. Numbers below the normal range become zero. (Highway has no name
// for the instruction.) Requires: has_bfloat16().
HWY_INLINE hn::Vec512<std::uint16_t> RoundTwo(hn::Vec512<float> first, hn::Vec512<float> second) {
  hn::Vec512<std::uint16_t> halves;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves.raw) : "v"(first.raw), "v"(second.raw));
  return halves;
}
#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
