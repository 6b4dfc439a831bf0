// Multiplies by IQ1_S to IQ3_S: a code is an index into a table (the grid) whose entries, the points, are the
// coordinates of eight or four neighbouring weights. The kernels load points one by one, and compute signs and scales
// in vectors. codec/blocks/grid_codes.cpp has the layouts.
#include "codec/blocks/grids.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/grid_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/blocks/grid_points-inl.hpp"
#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Describes a block of 256 weights that ByteSums multiplies.
template <std::size_t kBlockBytes, std::size_t kGroup>
struct GridBlock : CodeBlock<256, kBlockBytes, kGroup> {
  // Passes eight scales to the sink: factor * (2 * half + 1) for each half (four bits) of four bytes.
  template <class Sink>
  static HWY_INLINE void pass_odd_halves(FourBytesEach bytes, hn::Vec<FourFloats> factor, Sink& out, std::size_t at) {
    PassScales(MakeOdd(SplitHalves(bytes)), factor, out, at);
    PassScales(MakeOdd(SplitHalves(hn::ShiftRight<16>(bytes))), factor, out, at + 4);
  }
};

// Multiplies the coordinates of points by x, and adds the products of neighbouring columns; `minus` is 0xff for
// negative coordinates.
HWY_INLINE hn::Vec<CodeWords> MultiplyWithSigns(hn::Vec<CodeSigned> x, Codes points, Codes minus) {
  const auto sign = hn::BitCast(CodeSigned(), minus);
  return MultiplyAddPairs(points, hn::Sub(hn::Xor(x, sign), sign));
}

// Describes a block of 256 weights with a float16 number at its start, and odd integers as scales.
template <std::size_t kBlockBytes>
struct OddScales {
  template <std::size_t kTokens>
  using Sums = ScaledSums<kTokens>;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr std::size_t kNumber = 0;
  static constexpr bool kHasMins = false;
  static constexpr float kOffset = 0;

  // Returns twice each byte, plus 1.
  static HWY_INLINE Codes make_odd(Codes bytes) { return hn::Or(hn::Add(bytes, bytes), hn::Set(CodeTag(), 1)); }

  // Adds the products of the 32 columns of group kAt. Bytes kSigns to kSigns + 3 of `signs` have the signs.
  template <std::size_t kAt, std::uint8_t kSigns, class Into>
  static HWY_INLINE void add32(Into& sums, Codes first, Codes second, Codes signs) {
    const Codes minus = SpreadBits<kSigns, kSigns + 1>(signs);
    const Codes next_minus = SpreadBits<kSigns + 2, kSigns + 3>(signs);
    sums.template add32<kAt>([&](std::size_t t) HWY_ATTR {
      return hn::Add(MultiplyWithSigns(sums.load_x(t, 2 * kAt), first, minus),
                     MultiplyWithSigns(sums.load_x(t, 2 * kAt + 1), second, next_minus));
    });
  }
};

struct Iq2_XxsType : OddScales<66> {
  static constexpr float kUnit = 0.125F;

  // Returns the scales. Every second word of the block has signs, and its highest four bits are a scale.
  template <class From>
  static HWY_INLINE Codes load_factors(const From& sums) {
    return make_odd(
        hn::Or(hn::Or(load_scales<0>(sums), load_scales<1>(sums)), hn::Or(load_scales<2>(sums), load_scales<3>(sums))));
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    add_two<0>(sums);
    add_two<1>(sums);
    add_two<2>(sums);
    add_two<3>(sums);
  }

 private:
  template <std::size_t kTwo, class From>
  static HWY_INLINE Codes load_scales(const From& sums) {
    struct Places {
      alignas(16) std::uint8_t of[16];
    };
    static constexpr Places kPlaces = [] {
      Places places{};
      for (std::uint8_t& place : places.of) place = 128;
      places.of[2 * kTwo] = 7;
      places.of[2 * kTwo + 1] = 15;
      return places;
    }();
    return GetHighHalf(hn::TableLookupBytesOr0(sums.load(2 + 16 * kTwo), hn::LoadDup128(CodeTag(), kPlaces.of)));
  }
  template <std::size_t kTwo, class Into>
  static HWY_INLINE void add_two(Into& sums) {
    constexpr std::size_t kAt = 2 + 16 * kTwo;
    const Codes signs = AddEighthSignsOfWords(sums.load(kAt));
    add32<2 * kTwo, 4>(sums, load_points(sums, kAt), load_points(sums, kAt + 2), signs);
    add32<2 * kTwo + 1, 12>(sums, load_points(sums, kAt + 8), load_points(sums, kAt + 10), signs);
  }
  template <class From>
  static HWY_INLINE Codes load_points(const From& sums, std::size_t at) {
    return GatherRows(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      return kGridIq2Xxs[sums.rows[r][sums.start + at + i]];
    });
  }
};

// Reads sixteen scales from the last eight bytes of a block: each half of a byte is one.
template <std::size_t kBlockBytes>
struct SixteenScales : OddScales<kBlockBytes> {
  using Block = OddScales<kBlockBytes>;
  static constexpr float kUnit = 0.125F;

  template <class From>
  static HWY_INLINE Codes load_factors(const From& sums) {
    const Codes last = sums.load(kBlockBytes - 16);
    return Block::make_odd(hn::InterleaveUpper(CodeTag(), GetLowHalf(last), GetHighHalf(last)));
  }
  // Adds the products of groups 2 * kTwo and 2 * kTwo + 1. Their signs are in four bytes of `signs`: kSigns, kSigns +
  // kStep, ...
  template <std::size_t kTwo, std::uint8_t kSigns, std::uint8_t kStep, class Into>
  static HWY_INLINE void add_two(Into& sums, Codes first, Codes second, Codes signs) {
    const Codes minus = SpreadBits<kSigns, kSigns + kStep>(signs);
    const Codes next_minus = SpreadBits<kSigns + 2 * kStep, kSigns + 3 * kStep>(signs);
    sums.template add_two16<kTwo>(
        [&](std::size_t t) HWY_ATTR { return MultiplyWithSigns(sums.load_x(t, 2 * kTwo), first, minus); },
        [&](std::size_t t) HWY_ATTR { return MultiplyWithSigns(sums.load_x(t, 2 * kTwo + 1), second, next_minus); });
  }
};

struct Iq2_XsType : SixteenScales<74> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    add_four<0>(sums);
    add_four<1>(sums);
    add_four<2>(sums);
    add_four<3>(sums);
  }

 private:
  template <std::size_t kFour, class Into>
  static HWY_INLINE void add_four(Into& sums) {
    const hn::Repartition<std::uint16_t, CodeTag> words;
    const Codes both = sums.load(2 + 16 * kFour);
    const Codes signs = AddEighthSigns(hn::BitCast(CodeTag(), hn::ShiftRight<9>(hn::BitCast(words, both))));
    constexpr std::size_t kAt = 2 + 16 * kFour;
    add_two<2 * kFour, 0, 2>(sums, load_points(sums, kAt), load_points(sums, kAt + 4), signs);
    add_two<2 * kFour + 1, 8, 2>(sums, load_points(sums, kAt + 8), load_points(sums, kAt + 12), signs);
  }
  template <class From>
  static HWY_INLINE Codes load_points(const From& sums, std::size_t at) {
    return GatherRows(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      return kGridIq2Xs[Load16(sums.rows[r] + sums.start + at + 2 * i) & 511U];
    });
  }
};

struct Iq2_SType : SixteenScales<82> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    add_eight<0>(sums);
    add_eight<1>(sums);
  }

 private:
  template <std::size_t kHalf, class Into>
  static HWY_INLINE void add_eight(Into& sums) {
    const Codes signs = sums.load(34 + 16 * kHalf);
    add_two<4 * kHalf, 0, 1>(sums, load_points<8 * kHalf>(sums), load_points<8 * kHalf + 1>(sums), signs);
    add_two<4 * kHalf + 1, 4, 1>(sums, load_points<8 * kHalf + 2>(sums), load_points<8 * kHalf + 3>(sums), signs);
    add_two<4 * kHalf + 2, 8, 1>(sums, load_points<8 * kHalf + 4>(sums), load_points<8 * kHalf + 5>(sums), signs);
    add_two<4 * kHalf + 3, 12, 1>(sums, load_points<8 * kHalf + 6>(sums), load_points<8 * kHalf + 7>(sums), signs);
  }
  template <std::size_t kGroup, class From>
  static HWY_INLINE Codes load_points(const From& sums) {
    constexpr unsigned kUp = 8 - 4 * (kGroup % 2);  // moves the high bits of the first index to bits 8 and 9
    return GatherRows(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      const Bytes block = sums.rows[r] + sums.start;
      const std::uint32_t high = std::uint32_t{block[66 + kGroup / 2]} << kUp;
      return kGridIq2S[block[2 + 2 * kGroup + i] | ((i == 0 ? high : high >> 2) & 0x300U)];
    });
  }
};

struct Iq3_XxsType : OddScales<98> {
  static constexpr float kUnit = 0.25F;

  // Returns the scales: the highest four bits of each word of signs, times 2, plus 1.
  template <class From>
  static HWY_INLINE Codes load_factors(const From& sums) {
    alignas(16) static constexpr std::uint8_t kFirst[16] = {3,   7,   11,  15,  128, 128, 128, 128,
                                                            128, 128, 128, 128, 128, 128, 128, 128};
    alignas(16) static constexpr std::uint8_t kSecond[16] = {128, 128, 128, 128, 3,   7,   11,  15,
                                                             128, 128, 128, 128, 128, 128, 128, 128};
    const Codes first = hn::TableLookupBytesOr0(sums.load(66), hn::LoadDup128(CodeTag(), kFirst));
    return make_odd(
        GetHighHalf(hn::Or(first, hn::TableLookupBytesOr0(sums.load(82), hn::LoadDup128(CodeTag(), kSecond)))));
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    add_four<0>(sums);
    add_four<1>(sums);
  }

 private:
  template <std::size_t kFour, class Into>
  static HWY_INLINE void add_four(Into& sums) {
    constexpr std::size_t kAt = 2 + 32 * kFour;
    const Codes signs = AddEighthSignsOfWords(sums.load(66 + 16 * kFour));
    add32<4 * kFour, 0>(sums, load_points(sums, kAt), load_points(sums, kAt + 4), signs);
    add32<4 * kFour + 1, 4>(sums, load_points(sums, kAt + 8), load_points(sums, kAt + 12), signs);
    add32<4 * kFour + 2, 8>(sums, load_points(sums, kAt + 16), load_points(sums, kAt + 20), signs);
    add32<4 * kFour + 3, 12>(sums, load_points(sums, kAt + 24), load_points(sums, kAt + 28), signs);
  }
  template <class From>
  static HWY_INLINE Codes load_points(const From& sums, std::size_t at) {
    return GatherFours(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      return &kGridIq3Xxs[sums.rows[r][sums.start + at + i]];
    });
  }
};

struct Iq3_SType : GridBlock<110, 32> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords all(rows, start + 94);  // the scales are the last word
      pass_odd_halves(all.words[3], LoadFourHalves(rows, start), out, b * kScales);
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    alignas(64) std::uint16_t indices[kRowsOfVector][64];
    for (std::size_t r = 0; r < kRowsOfVector; ++r) store_indices(sums.rows[r] + sums.start, indices[r]);
    for (std::size_t half = 0; half < 2; ++half) {
      const Codes signs = sums.load(74 + 16 * half);
      add<0>(sums, indices, signs, 4 * half);
      add<4>(sums, indices, signs, 4 * half + 1);
      add<8>(sums, indices, signs, 4 * half + 2);
      add<12>(sums, indices, signs, 4 * half + 3);
    }
  }

 private:
  using Indices = std::uint16_t[kRowsOfVector][64];

  static HWY_INLINE void store_indices(Bytes block, std::uint16_t* indices) {
    const hn::FixedTag<std::uint16_t, 8> words;
    alignas(16) static constexpr std::uint16_t kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const auto bits = hn::Load(words, kBits);
    for (std::size_t group = 0; group < kScales; ++group) {
      const auto low = hn::PromoteTo(words, LoadU(hn::Rebind<std::uint8_t, decltype(words)>(), block + 2 + 8 * group));
      const auto is_high = hn::Eq(hn::And(hn::Set(words, block[66 + group]), bits), bits);
      hn::Store(hn::Or(low, hn::And(hn::VecFromMask(words, is_high), hn::Set(words, 256))), words, indices + 8 * group);
    }
  }
  template <std::uint8_t kSigns, class Into>
  static HWY_INLINE void add(Into& sums, const Indices& indices, Codes signs, std::size_t group) {
    const Codes first = load_points(indices, 8 * group);
    const Codes second = load_points(indices, 8 * group + 4);
    const Codes minus = SpreadBits<kSigns, kSigns + 1>(signs);
    const Codes next_minus = SpreadBits<kSigns + 2, kSigns + 3>(signs);
    sums.finish_each(group, [&](std::size_t t) HWY_ATTR {
      return SumPairs(hn::Add(MultiplyWithSigns(sums.load_x(t, 2 * group), first, minus),
                              MultiplyWithSigns(sums.load_x(t, 2 * group + 1), second, next_minus)));
    });
  }
  static HWY_INLINE Codes load_points(const Indices& indices, std::size_t at) {
    return GatherFours(CodeTag(), 0,
                       [&](std::size_t r, std::size_t i) HWY_ATTR { return &kGridIq3S[indices[r][at + i]]; });
  }
};

// The grid's coordinates are -1, 0 and 1; a code is the coordinate plus 1.
struct Iq1_SType : GridBlock<50, 32> {
  static constexpr bool kHasMins = true;

  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords all(rows, start + 34);
      const auto factor = LoadFourHalves(rows, start);
      for (std::size_t i = 0; i < 4; ++i) {
        pass_group(hn::ShiftRight<12>(all.words[i]), factor, out, b * kScales + 2 * i);
        pass_group(hn::ShiftRight<28>(all.words[i]), factor, out, b * kScales + 2 * i + 1);
      }
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t group = 0; group < kScales; ++group) {
      sums.multiply32(load_codes<8>(sums, group), load_codes<2>(sums, group), group);
    }
  }

 private:
  // Computes the scale and the minimum of a group. Bits 0 to 2 are the scale, as 2 * bits + 1. Bit 3 is the sign of an
  // eighth that is added to coordinates. The minimum also subtracts the 1 that was added to the codes.
  template <class Sink>
  static HWY_INLINE void pass_group(FourBytesEach bits, hn::Vec<FourFloats> factor, Sink& out, std::size_t group) {
    const auto odd = hn::Or(hn::ShiftLeft<1>(hn::And(bits, hn::Set(FourWords(), 7))), hn::Set(FourWords(), 1));
    const auto scale = hn::Mul(factor, hn::ConvertTo(FourFloats(), hn::BitCast(hn::RebindToSigned<FourWords>(), odd)));
    const auto sign = hn::ShiftLeft<28>(hn::And(bits, hn::Set(FourWords(), 8)));
    const auto eighth = hn::BitCast(FourFloats(), hn::Or(sign, hn::Set(FourWords(), 0x3e000000)));
    out.template accept_scale<0>(FourFloats(), group, scale);
    out.template accept_min<0>(FourFloats(), group, hn::Mul(scale, hn::Sub(eighth, hn::Set(FourFloats(), 1.0F))));
  }
  // Returns the codes of sixteen columns of a group: the first ones if kUp is 8, the last ones if it is 2. kUp shifts
  // the high bits of their first index to bits 8 to 10.
  template <unsigned kUp, class From>
  static HWY_INLINE Codes load_codes(const From& sums, std::size_t group) {
    const Codes points = GatherRows(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      const Bytes block = sums.rows[r] + sums.start;
      const std::uint32_t high = Load16(block + 34 + 2 * group) << kUp >> (3 * i);
      return kGridIq1[block[2 + 4 * group + (kUp == 8 ? 0 : 2) + i] | (high & 0x700U)];
    });
    return hn::Add(points, hn::Set(CodeTag(), 1));
  }
};

// A weight is a coordinate (-1, 0 or 1) plus or minus an eighth. Its code is eight times the weight, plus nine.
struct Iq1_MType : GridBlock<56, 16> {
  static constexpr float kOffset = 9;

  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords all(
          rows, start + 40);  // the scales are the last two words, whose halves have four bits of the factor each
      const auto& low = all.words[2];
      const auto& high = all.words[3];
      const auto factor =
          hn::Or(hn::Or(mask_bits(hn::ShiftRight<12>(low), 0xf), mask_bits(hn::ShiftRight<24>(low), 0xf0)),
                 hn::Or(mask_bits(hn::ShiftRight<4>(high), 0xf00), mask_bits(hn::ShiftRight<16>(high), 0xf000)));
      const auto eighth =
          hn::Mul(ConvertHalves(FourFloats(), hn::TruncateTo(hn::Rebind<std::uint16_t, FourWords>(), factor)),
                  hn::Set(FourFloats(), 0.125F));
      PassScales(make_scales(low), eighth, out, b * kScales);
      PassScales(make_scales(hn::ShiftRight<16>(low)), eighth, out, b * kScales + 4);
      PassScales(make_scales(high), eighth, out, b * kScales + 8);
      PassScales(make_scales(hn::ShiftRight<16>(high)), eighth, out, b * kScales + 12);
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes halves = sums.load(32);
    add<0>(sums, halves);
    add<1>(sums, halves);
    add<2>(sums, halves);
    add<3>(sums, halves);
    add<4>(sums, halves);
    add<5>(sums, halves);
    add<6>(sums, halves);
    add<7>(sums, halves);
    add<8>(sums, halves);
    add<9>(sums, halves);
    add<10>(sums, halves);
    add<11>(sums, halves);
    add<12>(sums, halves);
    add<13>(sums, halves);
    add<14>(sums, halves);
    add<15>(sums, halves);
  }

 private:
  static HWY_INLINE FourBytesEach mask_bits(FourBytesEach words, std::uint32_t mask) {
    return hn::And(words, hn::Set(FourWords(), mask));
  }
  // Returns four scales as bytes: 2 * n + 1 for each number n of three bits in the lowest twelve bits of each word.
  static HWY_INLINE FourBytesEach make_scales(FourBytesEach words) {
    return MakeOdd(
        hn::Or(hn::Or(mask_bits(words, 7), mask_bits(hn::ShiftLeft<5>(words), 0x700)),
               hn::Or(mask_bits(hn::ShiftLeft<10>(words), 0x70000), mask_bits(hn::ShiftLeft<15>(words), 0x7000000))));
  }
  template <std::uint8_t kGroup, class Into>
  static HWY_INLINE void add(Into& sums, Codes halves) {
    alignas(16) static constexpr std::uint8_t kPlaces[16] = {kGroup, kGroup, kGroup, kGroup, kGroup, kGroup,
                                                             kGroup, kGroup, kGroup, kGroup, kGroup, kGroup,
                                                             kGroup, kGroup, kGroup, kGroup};
    alignas(16) static constexpr std::uint8_t kBits[16] = {8,   8,   8,   8,   8,   8,   8,   8,
                                                           128, 128, 128, 128, 128, 128, 128, 128};
    const Codes points = GatherRows(CodeTag(), 0, [&](std::size_t r, std::size_t i) HWY_ATTR {
      const Bytes block = sums.rows[r] + sums.start;
      const std::uint32_t high =
          i == 0 ? std::uint32_t{block[32 + kGroup]} << 8 : std::uint32_t{block[32 + kGroup]} << 4;
      return kGridIq1[block[2 * kGroup + i] | (high & 0x700U)];
    });
    const hn::Repartition<std::uint16_t, CodeTag> words;
    const auto eights =
        hn::BitCast(CodeTag(), hn::ShiftLeft<3>(hn::BitCast(words, hn::Add(points, hn::Set(CodeTag(), 1)))));
    const auto bits = hn::LoadDup128(CodeTag(), kBits);
    const auto minus = hn::And(hn::TableLookupBytes(halves, hn::LoadDup128(CodeTag(), kPlaces)), bits);
    const auto plus = hn::And(hn::VecFromMask(CodeTag(), hn::Eq(minus, hn::Zero(CodeTag()))), hn::Set(CodeTag(), 2));
    sums.multiply16(hn::Add(eights, plus), kGroup);
  }
};

#endif

const TypeKernels& GetIq1_S() { return GetBlockKernels<struct Iq1_SType>(); }
const TypeKernels& GetIq1_M() { return GetBlockKernels<struct Iq1_MType>(); }
const TypeKernels& GetIq2_Xxs() { return GetBlockKernels<struct Iq2_XxsType>(); }
const TypeKernels& GetIq2_Xs() { return GetBlockKernels<struct Iq2_XsType>(); }
const TypeKernels& GetIq2_S() { return GetBlockKernels<struct Iq2_SType>(); }
const TypeKernels& GetIq3_Xxs() { return GetBlockKernels<struct Iq3_XxsType>(); }
const TypeKernels& GetIq3_S() { return GetBlockKernels<struct Iq3_SType>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_iq1_s_kernels, GetIq1_S)
POISE_EXPORT_KERNELS(get_iq1_m_kernels, GetIq1_M)
POISE_EXPORT_KERNELS(get_iq2_xxs_kernels, GetIq2_Xxs)
POISE_EXPORT_KERNELS(get_iq2_xs_kernels, GetIq2_Xs)
POISE_EXPORT_KERNELS(get_iq2_s_kernels, GetIq2_S)
POISE_EXPORT_KERNELS(get_iq3_xxs_kernels, GetIq3_Xxs)
POISE_EXPORT_KERNELS(get_iq3_s_kernels, GetIq3_S)

}  // namespace poise
#endif
