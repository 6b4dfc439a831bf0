// Products with Q2_K to Q6_K and Q8_K: 256 codes in groups of 16 or 32. The scale of a group, and its minimum, are a small integer times a
// float16 number of the block. (Q8_K has one scale, a float32 number.)
// codec/blocks/super_blocks.cpp says what is where.
#include "kernels/blocks/block_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/super_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

struct Q2_KType;
struct Q3_KType;
struct Q4_KType;
struct Q5_KType;
struct Q6_KType;
struct Q8_KType;

#else

// A block of 256.
template <std::size_t kBlockBytes, std::size_t kGroup, bool kMins, int kTaken = 0>
struct SuperBlock {
  using Sums = ByteSums;
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kScaled = kGroup;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr bool kHasMins = kMins;
  static constexpr float kOffset = kTaken;
  static constexpr std::size_t kScales = kElements / kGroup;
};

using FourBytesEach = hn::Vec<FourWords>;  // four bytes of each of four rows

HWY_INLINE FourBytesEach Masked(FourBytesEach bytes, std::uint32_t mask) { return hn::And(bytes, hn::Set(FourWords(), mask)); }

// The bits of codes that lie in bytes by twos: those of 32 neighbours in bits 0 and 1, of the next 32 in bits 2 and 3, and so on. kPair is which,
// kBit where the lower of them is to be.
template <int kPair, int kBit>
HWY_INLINE Codes TwoBits(Codes codes) {
  return MaskedShift<kBit - 2 * kPair>(codes, 3 << (2 * kPair));
}

struct Q2_KType : SuperBlock<84, 16, true> {
  template <class Sink>
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TurnedWords both(rows, start);
      const auto scale = FourHalves(rows, start + 80);
      const auto min = hn::Neg(FourHalves(rows, start + 82));
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < 4; ++i) {
        PutScales(Masked(both.words[i], 0x0f0f0f0f), scale, out, b * kScales + 4 * i);
        PutMins(Masked(hn::ShiftRight<4>(both.words[i]), 0x0f0f0f0f), min, out, b * kScales + 4 * i);
      }
    }
  }
  static HWY_INLINE void multiply(ByteSums& sums) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Codes four = sums.load(16 + 32 * half + 16 * i);
        sums.multiply16(TwoBits<0, 0>(four), 8 * half + i);
        sums.multiply16(TwoBits<1, 0>(four), 8 * half + i + 2);
        sums.multiply16(TwoBits<2, 0>(four), 8 * half + i + 4);
        sums.multiply16(TwoBits<3, 0>(four), 8 * half + i + 6);
      }
    }
  }
};

struct Q3_KType : SuperBlock<110, 16, false, 4> {
  template <class Sink>
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TurnedWords all(rows, start + 92);  // the factors are the last three words
      const auto scale = FourHalves(rows, start + 108);
      const auto& low = all.words[1];
      const auto& high = all.words[2];
      const auto& top = all.words[3];
      const std::size_t scales = b * kScales;
      PutScales(factor(Masked(low, 0x0f0f0f0f), hn::ShiftLeft<4>(Masked(top, 0x03030303))), scale, out, scales);
      PutScales(factor(Masked(high, 0x0f0f0f0f), hn::ShiftLeft<2>(Masked(top, 0x0c0c0c0c))), scale, out, scales + 4);
      PutScales(factor(Masked(hn::ShiftRight<4>(low), 0x0f0f0f0f), Masked(top, 0x30303030)), scale, out, scales + 8);
      PutScales(factor(Masked(hn::ShiftRight<4>(high), 0x0f0f0f0f), hn::ShiftRight<2>(Masked(top, 0xc0c0c0c0))), scale, out, scales + 12);
    }
  }
  static HWY_INLINE void multiply(ByteSums& sums) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Codes third = sums.load(16 * i);
      const Codes low = sums.load(32 + 16 * i);
      add(sums, TwoBits<0, 0>(low), MaskedShift<2>(third, 1), i);
      add(sums, TwoBits<1, 0>(low), MaskedShift<1>(third, 2), i + 2);
      add(sums, TwoBits<2, 0>(low), MaskedShift<0>(third, 4), i + 4);
      add(sums, TwoBits<3, 0>(low), MaskedShift<-1>(third, 8), i + 6);
      const Codes high = sums.load(64 + 16 * i);
      add(sums, TwoBits<0, 0>(high), MaskedShift<-2>(third, 16), i + 8);
      add(sums, TwoBits<1, 0>(high), MaskedShift<-3>(third, 32), i + 10);
      add(sums, TwoBits<2, 0>(high), MaskedShift<-4>(third, 64), i + 12);
      add(sums, TwoBits<3, 0>(high), MaskedShift<-5>(third, 128), i + 14);
    }
  }

 private:
  // Six bits less 32.
  static HWY_INLINE FourBytesEach factor(FourBytesEach low, FourBytesEach high) {
    const hn::Repartition<std::uint8_t, FourWords> bytes;
    return hn::BitCast(FourWords(), hn::Sub(hn::BitCast(bytes, hn::Or(low, high)), hn::Set(bytes, 32)));
  }
  static HWY_INLINE void add(ByteSums& sums, Codes low, Codes third, std::size_t group) { sums.multiply16(hn::Or(low, third), group); }
};

// Q4_K and Q5_K have the same scales and minimums.
template <std::size_t kBlockBytes>
struct SixBitFactors : SuperBlock<kBlockBytes, 32, true> {
  using Block = SuperBlock<kBlockBytes, 32, true>;
  template <class Sink>
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += Block::kBytes) {
      const TurnedWords all(rows, start);
      const hn::Rebind<std::uint16_t, FourWords> halves;
      const auto scale = HalvesToFloats(FourFloats(), hn::TruncateTo(halves, all.words[0]));
      const auto min = hn::Neg(HalvesToFloats(FourFloats(), hn::TruncateTo(halves, hn::ShiftRight<16>(all.words[0]))));
      const auto& low_scales = all.words[1];
      const auto& low_mins = all.words[2];
      const auto& high = all.words[3];
      const std::size_t at = b * Block::kScales;
      PutScales(Masked(low_scales, 0x3f3f3f3f), scale, out, at);
      PutScales(hn::Or(Masked(high, 0x0f0f0f0f), Masked(hn::ShiftRight<2>(low_scales), 0x30303030)), scale, out, at + 4);
      PutMins(Masked(low_mins, 0x3f3f3f3f), min, out, at);
      PutMins(hn::Or(Masked(hn::ShiftRight<4>(high), 0x0f0f0f0f), Masked(hn::ShiftRight<2>(low_mins), 0x30303030)), min, out, at + 4);
    }
  }
};

struct Q4_KType : SixBitFactors<144> {
  static HWY_INLINE void multiply(ByteSums& sums) {
    for (std::size_t i = 0; i < 4; ++i) {
      const Codes first = sums.load(16 + 32 * i);
      const Codes second = sums.load(32 + 32 * i);
      sums.multiply32(LowHalf(first), LowHalf(second), 2 * i);
      sums.multiply32(HighHalf(first), HighHalf(second), 2 * i + 1);
    }
  }
};

struct Q5_KType : SixBitFactors<176> {
  static HWY_INLINE void multiply(ByteSums& sums) {
    const Codes first = sums.load(16);
    const Codes second = sums.load(32);
    add_two<0>(sums, first, second);
    add_two<1>(sums, first, second);
    add_two<2>(sums, first, second);
    add_two<3>(sums, first, second);
  }

 private:
  // Groups 2 * kTwo and the next, whose fifth bits are these bits of the bytes.
  template <int kTwo>
  static HWY_INLINE void add_two(ByteSums& sums, Codes first_bits, Codes second_bits) {
    const Codes first = sums.load(48 + 32 * kTwo);
    const Codes second = sums.load(64 + 32 * kTwo);
    constexpr int kLow = 1 << (2 * kTwo);
    constexpr int kHigh = 2 << (2 * kTwo);
    sums.multiply32(hn::Or(LowHalf(first), MaskedShift<4 - 2 * kTwo>(first_bits, kLow)), hn::Or(LowHalf(second), MaskedShift<4 - 2 * kTwo>(second_bits, kLow)),
                    2 * kTwo);
    sums.multiply32(hn::Or(HighHalf(first), MaskedShift<3 - 2 * kTwo>(first_bits, kHigh)),
                    hn::Or(HighHalf(second), MaskedShift<3 - 2 * kTwo>(second_bits, kHigh)), 2 * kTwo + 1);
  }
};

struct Q6_KType : SuperBlock<210, 16, false, 32> {
  template <class Sink>
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TurnedWords all(rows, start + 192);
      const auto scale = FourHalves(rows, start + 208);
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < 4; ++i) PutScales(all.words[i], scale, out, b * kScales + 4 * i);
    }
  }
  static HWY_INLINE void multiply(ByteSums& sums) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Codes first = sums.load(64 * half + 16 * i);
        const Codes second = sums.load(64 * half + 32 + 16 * i);
        const Codes high = sums.load(128 + 32 * half + 16 * i);
        add(sums, LowHalf(first), TwoBits<0, 4>(high), 8 * half + i);
        add(sums, LowHalf(second), TwoBits<1, 4>(high), 8 * half + i + 2);
        add(sums, HighHalf(first), TwoBits<2, 4>(high), 8 * half + i + 4);
        add(sums, HighHalf(second), TwoBits<3, 4>(high), 8 * half + i + 6);
      }
    }
  }

 private:
  static HWY_INLINE void add(ByteSums& sums, Codes low, Codes high, std::size_t group) { sums.multiply16(hn::Or(low, high), group); }
};

struct Q8_KType : SuperBlock<292, 256, false> {
  using Sums = WordSums;
  template <class Sink>
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) std::memcpy(&out.scales[b][r], rows[r] + start, sizeof(float));
    }
  }
  static HWY_INLINE void multiply(WordSums& sums) {
    WordSums::Sum scaled;
    for (std::size_t i = 0; i < 16; ++i) sums.add(scaled, sums.load(4 + 16 * i), i);
    sums.finish(scaled.total(), 0);
  }
};

#endif

const TypeKernels& Q2_K() { return BlockKernels<Q2_KType>(); }
const TypeKernels& Q3_K() { return BlockKernels<Q3_KType>(); }
const TypeKernels& Q4_K() { return BlockKernels<Q4_KType>(); }
const TypeKernels& Q5_K() { return BlockKernels<Q5_KType>(); }
const TypeKernels& Q6_K() { return BlockKernels<Q6_KType>(); }
const TypeKernels& Q8_K() { return BlockKernels<Q8_KType>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Q2_K);
HWY_EXPORT(Q3_K);
HWY_EXPORT(Q4_K);
HWY_EXPORT(Q5_K);
HWY_EXPORT(Q6_K);
HWY_EXPORT(Q8_K);

}  // namespace

const TypeKernels& q2_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q2_K)(); }
const TypeKernels& q3_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q3_K)(); }
const TypeKernels& q4_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q4_K)(); }
const TypeKernels& q5_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q5_K)(); }
const TypeKernels& q6_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q6_K)(); }
const TypeKernels& q8_k_kernels() { return HWY_DYNAMIC_DISPATCH(Q8_K)(); }

}  // namespace poise
#endif
