// Splits float32 numbers into sums of bfloat16 numbers.
#include "kernels/processor.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/split_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Splits numbers [from, from + count). Rounds with integer instructions, which every processor has.
void SplitInWords(const float* x, std::size_t from, std::size_t count, std::span<std::uint16_t* const> parts) {
  const hn::RebindToSigned<Floats> words;
  const hn::RebindToUnsigned<Floats> bits;
  const hn::Rebind<std::uint16_t, Floats> halves;
  for (std::size_t i = from; i < from + count; i += hn::Lanes(Floats())) {
    const auto number = Load(x + i);
    const auto word = hn::BitCast(words, number);
    const auto magnitude = hn::And(word, hn::Set(words, 0x7fffffff));
    const auto is_cut = hn::Gt(magnitude, hn::Set(words, 0x7f7f7fff));
    const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(words, 0x7f800000)), hn::Set(words, 0x400000));
    const auto first =
        hn::IfThenElse(hn::RebindMask(bits, is_cut), hn::ShiftRight<16>(hn::BitCast(bits, hn::Or(word, quiet))),
                       RoundToUpperHalf(bits, hn::BitCast(bits, word)));
    hn::StoreU(hn::TruncateTo(halves, first), halves, parts.front() + i);
    const auto has_rest = hn::RebindMask(Floats(), hn::Lt(magnitude, hn::Set(words, 0x7f800000)));
    auto rest = hn::IfThenElseZero(has_rest, hn::Sub(number, hn::BitCast(Floats(), hn::ShiftLeft<16>(first))));
    for (std::uint16_t* const part : parts.subspan(1)) {
      const auto next = RoundToUpperHalf(bits, hn::BitCast(bits, rest));
      hn::StoreU(hn::TruncateTo(halves, next), halves, part + i);
      rest = hn::Sub(rest, hn::BitCast(Floats(), hn::ShiftLeft<16>(next)));
    }
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Splits 32 numbers at a time, with the instruction of AVX-512 BF16 that rounds. Requires: has_bfloat16().
void SplitByProcessor(const float* x, std::size_t count, std::span<std::uint16_t* const> parts) {
  const hn::FixedTag<std::uint16_t, 32> halves;
  const hn::Half<decltype(halves)> half;
  const hn::RebindToUnsigned<Floats> words;
  const auto exponent = hn::Set(halves, 0x7f80);
  const auto floats = [&](auto bits)
                          HWY_ATTR { return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits))); };
  for (std::size_t i = 0; i < count; i += 32) {
    auto low = Load(x + i);
    auto high = Load(x + i + 16);
    auto part = RoundTwo(low, high);
    // SplitInWords() handles infinities, NaN, and numbers that the instruction has rounded to infinity.
    if (!hn::AllFalse(halves, hn::Eq(hn::And(part, exponent), exponent))) {
      SplitInWords(x, i, 32, parts);
      continue;
    }
    hn::StoreU(part, halves, parts.front() + i);
    for (std::uint16_t* const to : parts.subspan(1)) {
      low = hn::Sub(low, floats(hn::LowerHalf(half, part)));
      high = hn::Sub(high, floats(hn::UpperHalf(half, part)));
      part = RoundTwo(low, high);
      hn::StoreU(part, halves, to + i);
    }
  }
}
#endif

void SplitFloats(const float* x, std::size_t count, std::span<std::uint16_t* const> parts) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (has_bfloat16()) return SplitByProcessor(x, count, parts);
#endif
  SplitInWords(x, 0, count, parts);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(SplitFloats);

void split_floats(const float* x, std::size_t count, std::span<std::uint16_t* const> parts) {
  HWY_DYNAMIC_DISPATCH(SplitFloats)(x, count, parts);
}

}  // namespace poise
#endif
