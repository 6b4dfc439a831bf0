// Multiplies by Q2_K to Q6_K and Q8_K: 256 codes in groups of 16 or 32. The scale of a group, and its minimum if it has
// one, are a small integer times a float16 number of the block. (Q8_K has one scale, a float32 number.)
// codec/blocks/super_blocks.cpp has the layouts.
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/super_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using FourBytesEach = hn::Vec<FourWords>;  // four bytes of each of four rows

HWY_INLINE FourBytesEach MaskBytes(FourBytesEach bytes, std::uint32_t mask) {
  return hn::And(bytes, hn::Set(FourWords(), mask));
}

// Returns two bits of each code. A byte has four pairs of bits: pair 0 belongs to one of 32 neighbouring codes, pair 1
// to one of the next 32, and so on. Extracts pair kPair, and moves it to bits kBit and kBit + 1.
template <int kPair, int kBit>
HWY_INLINE Codes ExtractTwoBits(Codes codes) {
  return MaskAndShift<kBit - 2 * kPair>(codes, 3 << (2 * kPair));
}

struct Q2_KType : CodeBlock<256, 84, 16, true> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords both(rows, start);
      const auto scale = LoadFourHalves(rows, start + 80);
      const auto min = hn::Neg(LoadFourHalves(rows, start + 82));
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < 4; ++i) {
        PassScales(MaskBytes(both.words[i], 0x0f0f0f0f), scale, out, b * kScales + 4 * i);
        PassMins(MaskBytes(hn::ShiftRight<4>(both.words[i]), 0x0f0f0f0f), min, out, b * kScales + 4 * i);
      }
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Codes four = sums.load(16 + 32 * half + 16 * i);
        sums.multiply16(ExtractTwoBits<0, 0>(four), 8 * half + i);
        sums.multiply16(ExtractTwoBits<1, 0>(four), 8 * half + i + 2);
        sums.multiply16(ExtractTwoBits<2, 0>(four), 8 * half + i + 4);
        sums.multiply16(ExtractTwoBits<3, 0>(four), 8 * half + i + 6);
      }
    }
  }
};

struct Q3_KType : CodeBlock<256, 110, 16, false, 4> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords all(rows, start + 92);  // the factors are the last three words
      const auto scale = LoadFourHalves(rows, start + 108);
      const auto& low = all.words[1];
      const auto& high = all.words[2];
      const auto& top = all.words[3];
      const std::size_t scales = b * kScales;
      PassScales(join_factors(MaskBytes(low, 0x0f0f0f0f), hn::ShiftLeft<4>(MaskBytes(top, 0x03030303))), scale, out,
                 scales);
      PassScales(join_factors(MaskBytes(high, 0x0f0f0f0f), hn::ShiftLeft<2>(MaskBytes(top, 0x0c0c0c0c))), scale, out,
                 scales + 4);
      PassScales(join_factors(MaskBytes(hn::ShiftRight<4>(low), 0x0f0f0f0f), MaskBytes(top, 0x30303030)), scale, out,
                 scales + 8);
      PassScales(
          join_factors(MaskBytes(hn::ShiftRight<4>(high), 0x0f0f0f0f), hn::ShiftRight<2>(MaskBytes(top, 0xc0c0c0c0))),
          scale, out, scales + 12);
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Codes third = sums.load(16 * i);
      const Codes low = sums.load(32 + 16 * i);
      add(sums, ExtractTwoBits<0, 0>(low), MaskAndShift<2>(third, 1), i);
      add(sums, ExtractTwoBits<1, 0>(low), MaskAndShift<1>(third, 2), i + 2);
      add(sums, ExtractTwoBits<2, 0>(low), MaskAndShift<0>(third, 4), i + 4);
      add(sums, ExtractTwoBits<3, 0>(low), MaskAndShift<-1>(third, 8), i + 6);
      const Codes high = sums.load(64 + 16 * i);
      add(sums, ExtractTwoBits<0, 0>(high), MaskAndShift<-2>(third, 16), i + 8);
      add(sums, ExtractTwoBits<1, 0>(high), MaskAndShift<-3>(third, 32), i + 10);
      add(sums, ExtractTwoBits<2, 0>(high), MaskAndShift<-4>(third, 64), i + 12);
      add(sums, ExtractTwoBits<3, 0>(high), MaskAndShift<-5>(third, 128), i + 14);
    }
  }

 private:
  // Returns scales of six bits, minus 32: `low` has their low four bits, `high` the others.
  static HWY_INLINE FourBytesEach join_factors(FourBytesEach low, FourBytesEach high) {
    const hn::Repartition<std::uint8_t, FourWords> bytes;
    return hn::BitCast(FourWords(), hn::Sub(hn::BitCast(bytes, hn::Or(low, high)), hn::Set(bytes, 32)));
  }
  template <class Into>
  static HWY_INLINE void add(Into& sums, Codes low, Codes third, std::size_t group) {
    sums.multiply16(hn::Or(low, third), group);
  }
};

// Decodes the scales and minimums of Q4_K and Q5_K, which store them alike.
template <std::size_t kBlockBytes>
struct SixBitFactors {
  template <std::size_t kTokens>
  using Sums = ScaledSums<kTokens>;
  static constexpr std::size_t kScaled = 32;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr float kUnit = 1;
  static constexpr std::size_t kNumber = 0;
  static constexpr std::size_t kMin = 2;
  static constexpr bool kHasMins = true;
  static constexpr float kOffset = 0;

  // Returns eight scales and then eight minimums. The block stores them in three times four bytes. The first four bytes
  // have four scales, and above them the highest two bits of the other four scales. The next four bytes have minimums
  // in the same way. The last four bytes have the lowest four bits of the other scales in their low halves, and those
  // of the other minimums in their high halves.
  template <class Into>
  static HWY_INLINE Codes load_factors(const Into& sums) {
    alignas(16) static constexpr std::uint8_t kLow[16] = {4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 128, 128, 128, 128};
    alignas(16) static constexpr std::uint8_t kLowBits[16] = {63, 63, 63, 63, 15, 15, 15, 15,
                                                              63, 63, 63, 63, 0,  0,  0,  0};
    alignas(16) static constexpr std::uint8_t kLast[16] = {128, 128, 128, 128, 128, 128, 128, 128,
                                                           128, 128, 128, 128, 12,  13,  14,  15};
    alignas(16) static constexpr std::uint8_t kHigh[16] = {128, 128, 128, 128, 4, 5, 6,  7,
                                                           128, 128, 128, 128, 8, 9, 10, 11};
    const auto table = [](const std::uint8_t* from) HWY_ATTR { return hn::LoadDup128(CodeTag(), from); };
    const Codes all = sums.load(0);
    const Codes low = hn::And(hn::TableLookupBytesOr0(all, table(kLow)), table(kLowBits));
    const Codes last = GetHighHalf(hn::TableLookupBytesOr0(all, table(kLast)));
    const Codes high = MaskAndShift<-2>(hn::TableLookupBytesOr0(all, table(kHigh)), 192);
    return hn::Or(hn::Or(low, last), high);
  }
  // Returns 256 times the sums of minimum * x over the columns of the block.
  template <class From>
  static HWY_INLINE hn::Vec<CodeSums> sum_mins(const From& sums, std::size_t t) {
    const auto zero = hn::Zero(CodeWords());
    const auto first = hn::BitCast(CodeInts(), hn::InterleaveLower(CodeWords(), sums.factors[1], zero));
    const auto second = hn::BitCast(CodeInts(), hn::InterleaveUpper(CodeWords(), sums.factors[1], zero));
    return MulAdd(hn::ConvertTo(CodeSums(), first), sums.load_sums_of_x(t, 0),
                  hn::Mul(hn::ConvertTo(CodeSums(), second), sums.load_sums_of_x(t, 1)));
  }
};

struct Q4_KType : SixBitFactors<144> {
  static constexpr NibblePlaces kNibbles = {.block_bytes = kBytes, .first = 16, .together = 32};

  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    add_two<0>(sums);
    add_two<1>(sums);
    add_two<2>(sums);
    add_two<3>(sums);
  }

 private:
  // Adds the products of groups 2 * kTwo and 2 * kTwo + 1.
  template <std::size_t kTwo, class Into>
  static HWY_INLINE void add_two(Into& sums) {
    const Codes first = sums.load(16 + 32 * kTwo);
    const Codes second = sums.load(32 + 32 * kTwo);
    sums.template multiply32<2 * kTwo>(GetLowHalf(first), GetLowHalf(second));
    sums.template multiply32<2 * kTwo + 1>(GetHighHalf(first), GetHighHalf(second));
  }
};

struct Q5_KType : SixBitFactors<176> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes first = sums.load(16);
    const Codes second = sums.load(32);
    const Codes low[2] = {GetLowHalf(first), GetLowHalf(second)};
    add_two<0>(sums, low);
    add_two<1>(sums, low);
    const Codes high[2] = {GetHighHalf(first), GetHighHalf(second)};
    add_two<2>(sums, high);
    add_two<3>(sums, high);
  }

 private:
  // Adds the products of groups 2 * kTwo and 2 * kTwo + 1. Each byte from 48 on has four bits of each of two codes; two
  // bits of the same byte of `bits` are their fifth bits.
  template <std::size_t kTwo, class Into>
  static HWY_INLINE void add_two(Into& sums, const Codes (&bits)[2]) {
    const Codes first = sums.load(48 + 32 * kTwo);
    const Codes second = sums.load(64 + 32 * kTwo);
    constexpr int kBit = kTwo % 2 == 0 ? 1 : 4;
    sums.template multiply32<2 * kTwo>(hn::Or(GetLowHalf(first), extract_fifth<kBit>(bits[0])),
                                       hn::Or(GetLowHalf(second), extract_fifth<kBit>(bits[1])));
    sums.template multiply32<2 * kTwo + 1>(hn::Or(GetHighHalf(first), extract_fifth<2 * kBit>(bits[0])),
                                           hn::Or(GetHighHalf(second), extract_fifth<2 * kBit>(bits[1])));
  }
  // Returns 16 for each byte that has a bit with the value kBit, else 0.
  template <int kBit>
  static HWY_INLINE Codes extract_fifth(Codes bits) {
    struct Sixteens {
      alignas(16) std::uint8_t of[16];
    };
    static constexpr Sixteens kSixteens = [] {
      Sixteens sixteens{};
      for (unsigned four = 0; four < 16; ++four) sixteens.of[four] = (four & kBit) != 0 ? 16 : 0;
      return sixteens;
    }();
    return hn::TableLookupBytes(hn::LoadDup128(CodeTag(), kSixteens.of), bits);
  }
};

struct Q6_KType {
  template <std::size_t kTokens>
  using Sums = ScaledSums<kTokens>;
  static constexpr std::size_t kScaled = 16;
  static constexpr std::size_t kBytes = 210;
  static constexpr float kUnit = 1;
  static constexpr std::size_t kNumber = 208;
  static constexpr bool kHasMins = false;
  static constexpr float kOffset = 32;

  template <class Into>
  static HWY_INLINE Codes load_factors(const Into& sums) {
    return sums.load(192);
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    multiply_half<0>(sums);
    multiply_half<1>(sums);
  }

 private:
  template <std::size_t kHalf, class Into>
  static HWY_INLINE void multiply_half(Into& sums) {
    const Codes first[2] = {sums.load(64 * kHalf), sums.load(64 * kHalf + 16)};
    const Codes second[2] = {sums.load(64 * kHalf + 32), sums.load(64 * kHalf + 48)};
    const Codes high[2] = {sums.load(128 + 32 * kHalf), sums.load(144 + 32 * kHalf)};
    sums.template multiply_two16<4 * kHalf>(hn::Or(GetLowHalf(first[0]), ExtractTwoBits<0, 4>(high[0])),
                                            hn::Or(GetLowHalf(first[1]), ExtractTwoBits<0, 4>(high[1])));
    sums.template multiply_two16<4 * kHalf + 1>(hn::Or(GetLowHalf(second[0]), ExtractTwoBits<1, 4>(high[0])),
                                                hn::Or(GetLowHalf(second[1]), ExtractTwoBits<1, 4>(high[1])));
    sums.template multiply_two16<4 * kHalf + 2>(hn::Or(GetHighHalf(first[0]), ExtractTwoBits<2, 4>(high[0])),
                                                hn::Or(GetHighHalf(first[1]), ExtractTwoBits<2, 4>(high[1])));
    sums.template multiply_two16<4 * kHalf + 3>(hn::Or(GetHighHalf(second[0]), ExtractTwoBits<3, 4>(high[0])),
                                                hn::Or(GetHighHalf(second[1]), ExtractTwoBits<3, 4>(high[1])));
  }
};

struct Q8_KType : CodeBlock<256, 292, 256, false> {
  template <std::size_t kTokens>
  using Sums = WordSums<kTokens>;
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) std::memcpy(&out.scales[b][r], rows[r] + start, sizeof(float));
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    typename Into::Sum scaled;
    for (std::size_t i = 0; i < 16; ++i) sums.add(scaled, sums.load(4 + 16 * i), i);
    sums.finish(scaled.total(), 0);
  }
};

#endif

const TypeKernels& GetQ2_K() { return GetPanelKernels<struct Q2_KType, 3>(); }
const TypeKernels& GetQ3_K() { return GetPanelKernels<struct Q3_KType, 7>(); }
const TypeKernels& GetQ4_K() { return GetPanelKernels<struct Q4_KType, 15>(); }
const TypeKernels& GetQ5_K() { return GetPanelKernels<struct Q5_KType, 31>(); }
const TypeKernels& GetQ6_K() { return GetPanelKernels<struct Q6_KType, 63>(); }
const TypeKernels& GetQ8_K() { return GetPanelKernels<struct Q8_KType, 255, true>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_q2_k_kernels, GetQ2_K)
POISE_EXPORT_KERNELS(get_q3_k_kernels, GetQ3_K)
POISE_EXPORT_KERNELS(get_q4_k_kernels, GetQ4_K)
POISE_EXPORT_KERNELS(get_q5_k_kernels, GetQ5_K)
POISE_EXPORT_KERNELS(get_q6_k_kernels, GetQ6_K)
POISE_EXPORT_KERNELS(get_q8_k_kernels, GetQ8_K)

}  // namespace poise
#endif
