// Products with IQ4_NL, IQ4_XS, MXFP4, NVFP4: codes of four bits that name one of sixteen numbers.
// codec/blocks/codebooks.cpp says what is where.
#include "codec/blocks/codebooks.hpp"
#include "kernels/blocks/block_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/codebooks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

struct Iq4_NlType;
struct Iq4_XsType;
struct Mxfp4Type;
struct Nvfp4Type;

#else

template <std::size_t kBlockElements, std::size_t kBlockBytes, std::size_t kGroup>
struct NamedNumbers {
  static constexpr std::size_t kElements = kBlockElements;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr std::size_t kScaled = kGroup;
  static constexpr std::size_t kScales = kElements / kGroup;
  static constexpr bool kHasMins = false;
  static constexpr float kOffset = 0;

  static HWY_INLINE Codes named(const std::array<std::int8_t, 16>& book, Codes codes) {
    return hn::TableLookupBytes(hn::LoadDup128(CodeTag(), reinterpret_cast<const std::uint8_t*>(book.data())), codes);
  }
  // 32 numbers of one scale, whose names are the low halves and the high ones of 16 bytes.
  static HWY_INLINE void multiply_pairs(BlockSums& sums, const std::array<std::int8_t, 16>& book, Codes pairs, std::size_t group) {
    ScaledSum scaled;
    sums.template add<true>(scaled, named(book, LowHalf(pairs)), 2 * group);
    sums.template add<true>(scaled, named(book, HighHalf(pairs)), 2 * group + 1);
    sums.finish(scaled.total(), group);
  }
};

struct Iq4_NlType : NamedNumbers<32, 18, 32> {
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    FourHalvesOfBlocks(rows, start, kBytes, blocks, out.scales);
  }
  static HWY_INLINE void multiply(BlockSums& sums) { multiply_pairs(sums, kIq4Numbers, sums.load(2), 0); }
};

struct Iq4_XsType : NamedNumbers<256, 136, 32> {
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TurnedWords all(rows, start);
      // Bits 2 i and 2 i + 1 are the highest of scale i.
      const auto high = hn::ShiftRight<16>(all.words[0]);
      const auto low = all.words[1];
      const auto factor = FourHalves(rows, start);
      float(*const scales)[4] = out.scales + b * kScales;
      put<0>(low, high, factor, scales);
      put<1>(low, high, factor, scales);
      put<2>(low, high, factor, scales);
      put<3>(low, high, factor, scales);
      put<4>(low, high, factor, scales);
      put<5>(low, high, factor, scales);
      put<6>(low, high, factor, scales);
      put<7>(low, high, factor, scales);
    }
  }
  static HWY_INLINE void multiply(BlockSums& sums) {
    for (std::size_t i = 0; i < kScales; ++i) multiply_pairs(sums, kIq4Numbers, sums.load(8 + 16 * i), i);
  }

 private:
  // Scale kScale: four bits and two, less 32.
  template <int kScale>
  static HWY_INLINE void put(hn::Vec<FourWords> low, hn::Vec<FourWords> high, hn::Vec<FourFloats> factor, float (*scales)[4]) {
    const hn::RebindToSigned<FourWords> integers;
    const auto four = hn::And(hn::ShiftRight<4 * kScale>(low), hn::Set(FourWords(), 15));
    const auto two = hn::And(hn::ShiftRight<2 * kScale>(high), hn::Set(FourWords(), 3));
    const auto scale = hn::Sub(hn::BitCast(integers, hn::Or(four, hn::ShiftLeft<4>(two))), hn::Set(integers, 32));
    hn::Store(hn::Mul(factor, hn::ConvertTo(FourFloats(), scale)), FourFloats(), scales[kScale]);
  }
};

struct Mxfp4Type : NamedNumbers<32, 17, 32> {
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    for (std::size_t i = 0; i < blocks; ++i, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) out.scales[i][r] = mxfp4_scale(rows[r][start]);
    }
  }
  static HWY_INLINE void multiply(BlockSums& sums) { multiply_pairs(sums, kFp4Numbers, sums.load(1), 0); }
};

struct Nvfp4Type : NamedNumbers<64, 36, 16> {
  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    for (std::size_t i = 0; i < blocks; ++i, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t j = 0; j < 4; ++j) out.scales[4 * i + j][r] = kScaleOf[rows[r][start + j]];
      }
    }
  }
  static HWY_INLINE void multiply(BlockSums& sums) {
    for (std::size_t i = 0; i < 2; ++i) {
      const hn::Repartition<std::uint64_t, CodeTag> eights;
      const Codes pairs = sums.load(4 + 16 * i);
      const auto low = hn::BitCast(eights, LowHalf(pairs));
      const auto high = hn::BitCast(eights, HighHalf(pairs));
      multiply_sixteen(sums, hn::BitCast(CodeTag(), hn::InterleaveLower(eights, low, high)), 2 * i);
      multiply_sixteen(sums, hn::BitCast(CodeTag(), hn::InterleaveUpper(eights, low, high)), 2 * i + 1);
    }
  }

 private:
  static constexpr auto kScaleOf = [] {
    std::array<float, 256> scales{};
    for (unsigned code = 0; code < 256; ++code) scales[code] = nvfp4_scale(code);
    return scales;
  }();
  static HWY_INLINE void multiply_sixteen(BlockSums& sums, Codes codes, std::size_t group) {
    ScaledSum scaled;
    sums.add<true>(scaled, named(kFp4Numbers, codes), group);
    sums.finish(scaled.total(), group);
  }
};

#endif

const TypeKernels& Iq4_Nl() { return BlockKernels<Iq4_NlType>(); }
const TypeKernels& Iq4_Xs() { return BlockKernels<Iq4_XsType>(); }
const TypeKernels& Mxfp4() { return BlockKernels<Mxfp4Type>(); }
const TypeKernels& Nvfp4() { return BlockKernels<Nvfp4Type>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Iq4_Nl);
HWY_EXPORT(Iq4_Xs);
HWY_EXPORT(Mxfp4);
HWY_EXPORT(Nvfp4);

}  // namespace

const TypeKernels& iq4_nl_kernels() { return HWY_DYNAMIC_DISPATCH(Iq4_Nl)(); }
const TypeKernels& iq4_xs_kernels() { return HWY_DYNAMIC_DISPATCH(Iq4_Xs)(); }
const TypeKernels& mxfp4_kernels() { return HWY_DYNAMIC_DISPATCH(Mxfp4)(); }
const TypeKernels& nvfp4_kernels() { return HWY_DYNAMIC_DISPATCH(Nvfp4)(); }

}  // namespace poise
#endif
