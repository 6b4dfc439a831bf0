// Products with Q4_0 to Q8_0: 32 codes, which a float16 scale of the block multiplies; Q4_1 and Q5_1 add a float16 minimum.
// codec/blocks/scaled_codes.cpp says what is where.
#include "kernels/blocks/block_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/scaled_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

struct Q4_0Type;
struct Q4_1Type;
struct Q5_0Type;
struct Q5_1Type;
struct Q8_0Type;

#else

// A block of 32: the scale is first, a minimum behind it.
template <std::size_t kBlockBytes, bool kMins, int kTaken = 0>
struct ScaledCodes {
  static constexpr std::size_t kElements = 32;
  static constexpr std::size_t kScaled = 32;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr bool kHasMins = kMins;
  static constexpr float kOffset = kTaken;

  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    FourHalvesOfBlocks(rows, start, kBytes, blocks, out.scales);
    if constexpr (kMins) FourHalvesOfBlocks(rows, start + 2, kBytes, blocks, out.mins);
  }
  template <bool kSigned>
  static HWY_INLINE void multiply_codes(BlockSums& sums, Codes first, Codes second) {
    ScaledSum scaled;
    sums.template add<kSigned>(scaled, first, 0);
    sums.template add<kSigned>(scaled, second, 1);
    sums.finish(scaled.total(), 0);
  }
  static HWY_INLINE void multiply_nibbles(BlockSums& sums, Codes pairs) {
    NibbleSums nibbles;
    sums.add_nibbles(nibbles, pairs, 0, 1);
    sums.finish(hn::Add(nibbles.low(), nibbles.high()), 0);
  }
};

struct Q4_0Type : ScaledCodes<18, false, 8> {
  static HWY_INLINE void multiply(BlockSums& sums) { multiply_nibbles(sums, sums.load(2)); }
};

struct Q4_1Type : ScaledCodes<20, true> {
  static HWY_INLINE void multiply(BlockSums& sums) { multiply_nibbles(sums, sums.load(4)); }
};

// 16 in byte i where bit i of the two bytes from the kFirst-th on is 1.
template <std::uint8_t kFirst>
HWY_INLINE Codes FifthBits(Codes bytes) {
  alignas(16) static constexpr std::uint8_t kPlaces[16] = {kFirst,     kFirst,     kFirst,     kFirst,     kFirst,     kFirst,     kFirst,     kFirst,
                                                           kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1};
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto bits = hn::LoadDup128(CodeTag(), kBits);
  const auto spread = hn::TableLookupBytes(bytes, hn::LoadDup128(CodeTag(), kPlaces));
  return hn::And(hn::VecFromMask(CodeTag(), hn::Eq(hn::And(spread, bits), bits)), hn::Set(CodeTag(), 16));
}

struct Q5_0Type : ScaledCodes<22, false, 16> {
  static HWY_INLINE void multiply(BlockSums& sums) {
    const Codes bits = sums.load(2);
    const Codes pairs = sums.load(6);
    multiply_codes<false>(sums, hn::Or(LowHalf(pairs), FifthBits<0>(bits)), hn::Or(HighHalf(pairs), FifthBits<2>(bits)));
  }
};

struct Q5_1Type : ScaledCodes<24, true> {
  static HWY_INLINE void multiply(BlockSums& sums) {
    const Codes bits = sums.load(4);
    const Codes pairs = sums.load(8);
    multiply_codes<false>(sums, hn::Or(LowHalf(pairs), FifthBits<0>(bits)), hn::Or(HighHalf(pairs), FifthBits<2>(bits)));
  }
};

struct Q8_0Type : ScaledCodes<34, false> {
  static HWY_INLINE void multiply(BlockSums& sums) { multiply_codes<true>(sums, sums.load(2), sums.load(18)); }
};

#endif

const TypeKernels& Q4_0() { return BlockKernels<Q4_0Type>(); }
const TypeKernels& Q4_1() { return BlockKernels<Q4_1Type>(); }
const TypeKernels& Q5_0() { return BlockKernels<Q5_0Type>(); }
const TypeKernels& Q5_1() { return BlockKernels<Q5_1Type>(); }
const TypeKernels& Q8_0() { return BlockKernels<Q8_0Type>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Q4_0);
HWY_EXPORT(Q4_1);
HWY_EXPORT(Q5_0);
HWY_EXPORT(Q5_1);
HWY_EXPORT(Q8_0);

}  // namespace

const TypeKernels& q4_0_kernels() { return HWY_DYNAMIC_DISPATCH(Q4_0)(); }
const TypeKernels& q4_1_kernels() { return HWY_DYNAMIC_DISPATCH(Q4_1)(); }
const TypeKernels& q5_0_kernels() { return HWY_DYNAMIC_DISPATCH(Q5_0)(); }
const TypeKernels& q5_1_kernels() { return HWY_DYNAMIC_DISPATCH(Q5_1)(); }
const TypeKernels& q8_0_kernels() { return HWY_DYNAMIC_DISPATCH(Q8_0)(); }

}  // namespace poise
#endif
