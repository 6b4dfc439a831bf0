// Multiplies by Q4_0 to Q8_0: 32 codes times a float16 scale of the block; Q4_1 and Q5_1 add a float16 minimum.
// codec/blocks/scaled_codes.cpp has the layouts.
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/scaled_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Describes a block of 32 codes, which begins with the scale; a minimum may follow.
template <template <std::size_t> class SumsOfTokens, std::size_t kBlockBytes, bool kMins, int kTaken = 0>
struct ScaledCodes : CodeBlock<32, kBlockBytes, 32, kMins, kTaken> {
  template <std::size_t kTokens>
  using Sums = SumsOfTokens<kTokens>;

  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    VisitHalves(rows, start, kBlockBytes, blocks, [&](auto floats, std::size_t i, auto scales) HWY_ATTR {
      out.template accept_scale<0>(floats, i, scales);
    });
    if constexpr (kMins) {
      VisitHalves(rows, start + 2, kBlockBytes, blocks,
                  [&](auto floats, std::size_t i, auto mins) HWY_ATTR { out.template accept_min<1>(floats, i, mins); });
    }
  }
};

template <std::size_t kTokens>
using BytesOf32 = ByteSums<kTokens, 32>;

struct Q4_0Type : ScaledCodes<BytesOf32, 18, false, 8> {
  static constexpr NibblePlaces kNibbles = {.block_bytes = kBytes, .first = 2};

  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes pairs = sums.load(2);
    sums.multiply32(GetLowHalf(pairs), GetHighHalf(pairs), 0);
  }
};

struct Q4_1Type : ScaledCodes<BytesOf32, 20, true> {
  static constexpr NibblePlaces kNibbles = {.block_bytes = kBytes, .first = 4};

  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes pairs = sums.load(4);
    sums.multiply32(GetLowHalf(pairs), GetHighHalf(pairs), 0);
  }
};

// Returns 16 for each bit of bytes kFirst and kFirst + 1 that is set, else 0: the fifth bits of sixteen codes.
template <std::uint8_t kFirst>
HWY_INLINE Codes ExtractFifthBits(Codes bytes) {
  return hn::And(SpreadBits<kFirst, kFirst + 1>(bytes), hn::Set(CodeTag(), 16));
}

struct Q5_0Type : ScaledCodes<BytesOf32, 22, false, 16> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes bits = sums.load(2);
    const Codes pairs = sums.load(6);
    sums.multiply32(hn::Or(GetLowHalf(pairs), ExtractFifthBits<0>(bits)),
                    hn::Or(GetHighHalf(pairs), ExtractFifthBits<2>(bits)), 0);
  }
};

struct Q5_1Type : ScaledCodes<BytesOf32, 24, true> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes bits = sums.load(4);
    const Codes pairs = sums.load(8);
    sums.multiply32(hn::Or(GetLowHalf(pairs), ExtractFifthBits<0>(bits)),
                    hn::Or(GetHighHalf(pairs), ExtractFifthBits<2>(bits)), 0);
  }
};

struct Q8_0Type : ScaledCodes<WordSums, 34, false> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    typename Into::Sum scaled;
    sums.add(scaled, sums.load(2), 0);
    sums.add(scaled, sums.load(18), 1);
    sums.finish(scaled.total(), 0);
  }
};

#endif

const TypeKernels& GetQ4_0() { return GetPanelKernels<struct Q4_0Type, 15>(); }
const TypeKernels& GetQ4_1() { return GetPanelKernels<struct Q4_1Type, 15>(); }
const TypeKernels& GetQ5_0() { return GetPanelKernels<struct Q5_0Type, 31>(); }
const TypeKernels& GetQ5_1() { return GetPanelKernels<struct Q5_1Type, 31>(); }
const TypeKernels& GetQ8_0() { return GetPanelKernels<struct Q8_0Type, 255, true>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_q4_0_kernels, GetQ4_0)
POISE_EXPORT_KERNELS(get_q4_1_kernels, GetQ4_1)
POISE_EXPORT_KERNELS(get_q5_0_kernels, GetQ5_0)
POISE_EXPORT_KERNELS(get_q5_1_kernels, GetQ5_1)
POISE_EXPORT_KERNELS(get_q8_0_kernels, GetQ8_0)

}  // namespace poise
#endif
