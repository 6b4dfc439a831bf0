// Multiplies by Q1_0, Q2_0, TQ1_0 and TQ2_0: codes of one or two bits, or of one base 3 digit, times a float16 scale of
// the block. codec/blocks/small_codes.cpp has the layouts.
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/small_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Describes a block of small codes with one scale, at byte kScale. Every 32 columns of x share a scale.
template <std::size_t kBlockElements, std::size_t kBlockBytes, std::size_t kScale>
struct SmallCodes : CodeBlock<kBlockElements, kBlockBytes, 32, false, 1> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBlockBytes) {
      const auto scale = LoadFourHalves(rows, start + kScale);
      constexpr std::size_t kScales = SmallCodes::kScales;
      for (std::size_t i = 0; i < kScales; ++i) out.template accept_scale<0>(FourFloats(), kScales * b + i, scale);
    }
  }
};

struct Q1_0Type : SmallCodes<128, 18, 0> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes bits = sums.load(2);
    sums.multiply32(extract_codes<0>(bits), extract_codes<2>(bits), 0);
    sums.multiply32(extract_codes<4>(bits), extract_codes<6>(bits), 1);
    sums.multiply32(extract_codes<8>(bits), extract_codes<10>(bits), 2);
    sums.multiply32(extract_codes<12>(bits), extract_codes<14>(bits), 3);
  }

 private:
  // Returns 2 for each bit of bytes kFirst and kFirst + 1 that is set, else 0.
  template <std::uint8_t kFirst>
  static HWY_INLINE Codes extract_codes(Codes bytes) {
    return hn::And(SpreadBits<kFirst, kFirst + 1>(bytes), hn::Set(CodeTag(), 2));
  }
};

struct Q2_0Type : SmallCodes<64, 18, 0> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes fours = sums.load(2);
    sums.multiply32(extract_codes<0>(fours), extract_codes<4>(fours), 0);
    sums.multiply32(extract_codes<8>(fours), extract_codes<12>(fours), 1);
  }

 private:
  // Returns the codes in four bytes from kFirst on: each byte has four neighbouring codes.
  template <std::uint8_t kFirst>
  static HWY_INLINE Codes extract_codes(Codes bytes) {
    alignas(16) static constexpr std::uint8_t kPlaces[16] = {
        kFirst,     kFirst,     kFirst,     kFirst,     kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1,
        kFirst + 2, kFirst + 2, kFirst + 2, kFirst + 2, kFirst + 3, kFirst + 3, kFirst + 3, kFirst + 3};
    const hn::Repartition<std::uint16_t, CodeTag> words;
    const hn::Repartition<std::uint32_t, CodeTag> fours;
    const auto spread = hn::BitCast(words, hn::TableLookupBytes(bytes, hn::LoadDup128(CodeTag(), kPlaces)));
    const auto part = [&](auto shifted, std::uint32_t mask)
                          HWY_ATTR { return hn::And(hn::BitCast(fours, shifted), hn::Set(fours, mask)); };
    const auto low = hn::Or(part(spread, 0x00000003), part(hn::ShiftRight<2>(spread), 0x00000300));
    const auto high = hn::Or(part(hn::ShiftRight<4>(spread), 0x00030000), part(hn::ShiftRight<6>(spread), 0x03000000));
    return hn::BitCast(CodeTag(), hn::Or(low, high));
  }
};

struct Tq1_0Type : SmallCodes<256, 54, 52> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    Codes first = sums.load(0);
    Codes second = sums.load(16);
    for (std::size_t digit = 0; digit < 5; ++digit) {
      sums.multiply32(extract_first_digit(first), extract_first_digit(second), digit);
      first = triple(first);
      second = triple(second);
    }
    // Then come sixteen bytes of five digits, which are sixteen columns apart, and four bytes of four digits, which are
    // four columns apart.
    Codes bytes = sums.load(32);
    const Codes digit0 = extract_first_digit(bytes);
    const Codes digit1 = extract_first_digit(bytes = triple(bytes));
    sums.multiply32(digit0, digit1, 5);
    const Codes digit2 = extract_first_digit(bytes = triple(bytes));
    const Codes digit3 = extract_first_digit(bytes = triple(bytes));
    sums.multiply32(digit2, digit3, 6);
    const Codes digit4 = extract_first_digit(triple(bytes));
    sums.multiply32(digit4, extract_last_digits(sums.load(38)), 7);
  }

 private:
  static HWY_INLINE Codes triple(Codes bytes) { return hn::Add(hn::Add(bytes, bytes), bytes); }
  // Returns the first base 3 digit of each byte: 3 * byte / 256, rounded down.
  static HWY_INLINE Codes extract_first_digit(Codes bytes) {
    const auto least = [&](std::uint8_t number) HWY_ATTR {
      // Returns 255, which is -1 modulo 256, for each byte of at least `number`.
      return hn::VecFromMask(CodeTag(), hn::Eq(hn::Max(bytes, hn::Set(CodeTag(), number)), bytes));
    };
    return hn::Sub(hn::Zero(CodeTag()), hn::Add(least(86), least(171)));
  }
  // Returns the digits of bytes 10 to 13: their four first digits, then their four second digits, and so on.
  static HWY_INLINE Codes extract_last_digits(Codes bytes) {
    alignas(16) static constexpr std::uint8_t kPlaces[16] = {10, 11, 12, 13, 10, 11, 12, 13,
                                                             10, 11, 12, 13, 10, 11, 12, 13};
    const hn::Repartition<std::uint32_t, CodeTag> fours;
    alignas(16) static constexpr std::uint32_t kFrom1[4] = {0, 0xffffffff, 0xffffffff, 0xffffffff};
    alignas(16) static constexpr std::uint32_t kFrom2[4] = {0, 0, 0xffffffff, 0xffffffff};
    alignas(16) static constexpr std::uint32_t kFrom3[4] = {0, 0, 0, 0xffffffff};
    Codes powers = hn::TableLookupBytes(bytes, hn::LoadDup128(CodeTag(), kPlaces));
    const auto next = [&](const std::uint32_t* where) HWY_ATTR {
      const auto twice = hn::And(hn::Add(powers, powers), hn::BitCast(CodeTag(), hn::LoadDup128(fours, where)));
      powers = hn::Add(powers, twice);
    };
    next(kFrom1);
    next(kFrom2);
    next(kFrom3);
    return extract_first_digit(powers);
  }
};

struct Tq2_0Type : SmallCodes<256, 66, 64> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t half = 0; half < 2; ++half) {
      const Codes first = sums.load(32 * half);
      const Codes second = sums.load(32 * half + 16);
      sums.multiply32(MaskAndShift<0>(first, 3), MaskAndShift<0>(second, 3), 4 * half);
      sums.multiply32(MaskAndShift<-2>(first, 12), MaskAndShift<-2>(second, 12), 4 * half + 1);
      sums.multiply32(MaskAndShift<-4>(first, 48), MaskAndShift<-4>(second, 48), 4 * half + 2);
      sums.multiply32(MaskAndShift<-6>(first, 192), MaskAndShift<-6>(second, 192), 4 * half + 3);
    }
  }
};

#endif

const TypeKernels& GetQ1_0() { return GetPanelKernels<struct Q1_0Type, 2>(); }
const TypeKernels& GetQ2_0() { return GetPanelKernels<struct Q2_0Type, 3>(); }
const TypeKernels& GetTq1_0() { return GetPanelKernels<struct Tq1_0Type, 2>(); }
const TypeKernels& GetTq2_0() { return GetPanelKernels<struct Tq2_0Type, 3>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_q1_0_kernels, GetQ1_0)
POISE_EXPORT_KERNELS(get_q2_0_kernels, GetQ2_0)
POISE_EXPORT_KERNELS(get_tq1_0_kernels, GetTq1_0)
POISE_EXPORT_KERNELS(get_tq2_0_kernels, GetTq2_0)

}  // namespace poise
#endif
