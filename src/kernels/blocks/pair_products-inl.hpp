// Products of codes and x of 8 bits, those of neighbours added.
#if defined(POISE_KERNELS_PAIR_PRODUCTS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_PAIR_PRODUCTS
#undef POISE_KERNELS_PAIR_PRODUCTS
#else
#define POISE_KERNELS_PAIR_PRODUCTS
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "kernels/blocks/block_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
HWY_INLINE hn::Vec128<std::int16_t> MultiplyPairs(hn::Vec128<std::uint8_t> codes, hn::Vec128<std::int8_t> x) {
  return hn::Vec128<std::int16_t>{_mm_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec128<std::int8_t> TakeSigns(hn::Vec128<std::int8_t> x, hn::Vec128<std::int8_t> numbers) {
  return hn::Vec128<std::int8_t>{_mm_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<std::int16_t> MultiplyPairs(hn::Vec256<std::uint8_t> codes, hn::Vec256<std::int8_t> x) {
  return hn::Vec256<std::int16_t>{_mm256_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec256<std::int8_t> TakeSigns(hn::Vec256<std::int8_t> x, hn::Vec256<std::int8_t> numbers) {
  return hn::Vec256<std::int8_t>{_mm256_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<std::int16_t> MultiplyPairs(hn::Vec512<std::uint8_t> codes, hn::Vec512<std::int8_t> x) {
  return hn::Vec512<std::int16_t>{_mm512_maddubs_epi16(codes.raw, x.raw)};
}
#endif

// Products of unsigned codes and signed x of 8 bits, those of two columns added. Requires: these come to 32767 at most.
HWY_INLINE hn::Vec<CodeWords> PairProducts(Codes codes, hn::Vec<CodeSigned> x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return MultiplyPairs(codes, x);
#else
  const auto words = hn::BitCast(CodeWords(), codes);
  const auto numbers = hn::BitCast(CodeWords(), x);
  const auto even = hn::Mul(EightBits<false>::plane<0>(words), EightBits<true>::plane<0>(numbers));
  return hn::Add(even, hn::Mul(EightBits<false>::plane<1>(words), EightBits<true>::plane<1>(numbers)));
#endif
}

// x with its sign changed where a number is below 0; any x where it is 0. Requires: x is more than -128.
HWY_INLINE hn::Vec<CodeSigned> WithSigns(hn::Vec<CodeSigned> x, hn::Vec<CodeSigned> numbers) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3 && HWY_TARGET > HWY_AVX3
  return TakeSigns(x, numbers);
#else
  const auto minus = hn::VecFromMask(CodeSigned(), hn::Lt(numbers, hn::Zero(CodeSigned())));
  return hn::Sub(hn::Xor(x, minus), minus);
#endif
}

// Sums of neighbours: of words 0 and 1, of words 2 and 3 and so on, in any order.
HWY_INLINE hn::Vec<CodeInts> SumsOfPairs(hn::Vec<CodeWords> words) {
  auto odd = hn::Zero(CodeInts());
  const auto even =
      hn::ReorderWidenMulAccumulate(CodeInts(), words, hn::Set(CodeWords(), 1), hn::Zero(CodeInts()), odd);
  return hn::Add(even, odd);
}

// Sums of products of neighbours: of words 0 and 1, of words 2 and 3 and so on.
HWY_INLINE hn::Vec<CodeInts> NeighbourProducts(hn::Vec<CodeWords> a, hn::Vec<CodeWords> b) {
#if HWY_ARCH_X86
  auto none = hn::Zero(CodeInts());
  return hn::ReorderWidenMulAccumulate(CodeInts(), a, b, hn::Zero(CodeInts()),
                                       none);  // this order is specific to x86
#else
  const auto even = [](hn::Vec<CodeWords> words)
                        HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(CodeInts(), words))); };
  const auto odd = [](hn::Vec<CodeWords> words) HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(CodeInts(), words)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
