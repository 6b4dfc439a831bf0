// Multiplies by IQ4_NL, IQ4_XS, MXFP4 and NVFP4: codes of four bits that are indices into a table of sixteen numbers.
// codec/blocks/codebooks.cpp has the layouts. This file also multiplies by MX numbers of four bits, whose codes
// and scales are in two arrays.
#include <algorithm>
#include <limits>

#include "codec/blocks/codebooks.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/codebooks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Maps a code of E8M0 to a scale: half of E8M0's value, because kFp4Numbers are twice E2M1's numbers. (Code 255 is a
// number in ggml's blocks; here it is NaN.)
constexpr auto kMxScaleOf = [] {
  std::array<float, 256> scales{};
  for (unsigned code = 0; code < 255; ++code) scales[code] = decode_mxfp4_scale(code);
  scales[255] = std::numeric_limits<float>::quiet_NaN();
  return scales;
}();

#if HWY_TARGET != HWY_SCALAR
// Decodes the 32 numbers of a group.
HWY_INLINE void DecodeMxGroup(Bytes pairs, float factor, float* out) {
  const hn::FixedTag<std::uint8_t, 16> codes;
  const hn::Rebind<std::int8_t, Floats> narrow;
  const auto book = hn::LoadU(codes, reinterpret_cast<const std::uint8_t*>(kFp4Numbers.data()));
  const auto both = hn::LoadU(codes, pairs);
  const hn::Repartition<std::uint16_t, decltype(codes)> words;  // x86 has no shifts of bytes
  const auto low_half = hn::Set(codes, 15);
  const auto low = hn::And(both, low_half);
  const auto high = hn::And(hn::BitCast(codes, hn::ShiftRight<4>(hn::BitCast(words, both))), low_half);
  HWY_ALIGN std::int8_t numbers[32];
  hn::StoreU(hn::TableLookupBytes(book, hn::InterleaveLower(codes, low, high)), codes,
             reinterpret_cast<std::uint8_t*>(numbers));
  hn::StoreU(hn::TableLookupBytes(book, hn::InterleaveUpper(codes, low, high)), codes,
             reinterpret_cast<std::uint8_t*>(numbers) + 16);
  const auto scale = hn::Set(Floats(), factor);
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t i = 0; i < 32; i += lanes) {
    const auto integers = hn::PromoteTo(hn::RebindToSigned<Floats>(), hn::LoadU(narrow, numbers + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(Floats(), integers), scale), Floats(), out + i);
  }
}
#endif

// Decodes MX numbers of four bits. A byte has two codes of a row, the even element in the low half; 32 codes share a
// scale.
void DecodeMx4(const StoredRows& matrix, const DecodedPart& part) {
  const std::size_t groups = matrix.columns / 32;
  for (std::size_t r = part.first; r < part.last; ++r) {
    const auto* const row = reinterpret_cast<const std::uint8_t*>(matrix.data) + r * (matrix.columns / 2);
    const std::byte* const exponents = matrix.scales + r * groups;
    float* const out = part.out + (r - part.first) * part.stride;
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t at = part.begin + i;
      const float factor = kMxScaleOf[std::to_integer<std::size_t>(exponents[at / 32])];
#if HWY_TARGET != HWY_SCALAR
      if (at % 32 == 0 && part.count - i >= 32) {
        DecodeMxGroup(row + at / 2, factor, out + i);
        i += 32;
        continue;
      }
#endif
      const unsigned pair = row[at / 2];
      out[i++] = static_cast<float>(kFp4Numbers[at % 2 == 0 ? pair & 15U : pair >> 4U]) * factor;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

template <std::size_t kBlockElements, std::size_t kBlockBytes, std::size_t kGroup, int kTaken>
struct NamedNumbers : CodeBlock<kBlockElements, kBlockBytes, kGroup, false, kTaken> {
  static HWY_INLINE Codes look_up(const std::array<std::int8_t, 16>& book, Codes codes) {
    return hn::TableLookupBytes(hn::LoadDup128(CodeTag(), reinterpret_cast<const std::uint8_t*>(book.data())), codes);
  }
};

// Multiplies 32 numbers that share a scale: the low halves of 16 bytes are the first 16 codes, the high halves the
// others.
template <std::size_t kBlockElements, std::size_t kBlockBytes>
struct Iq4Numbers : NamedNumbers<kBlockElements, kBlockBytes, 32, 0> {
  template <class Into>
  static HWY_INLINE void multiply_pairs(Into& sums, Codes pairs, std::size_t group) {
    sums.multiply_signed32(Iq4Numbers::look_up(kIq4Numbers, GetLowHalf(pairs)),
                           Iq4Numbers::look_up(kIq4Numbers, GetHighHalf(pairs)), group);
  }
};

// Adds twelve to FP4 numbers, so that none is negative.
template <std::size_t kBlockElements, std::size_t kBlockBytes, std::size_t kGroup>
struct Fp4Numbers : NamedNumbers<kBlockElements, kBlockBytes, kGroup, 12> {
  static HWY_INLINE Codes look_up_raised(Codes codes) { return Fp4Numbers::look_up(kRaised, codes); }

 private:
  static constexpr auto kRaised = [] {
    std::array<std::int8_t, 16> raised{};
    for (std::size_t i = 0; i < 16; ++i) raised[i] = static_cast<std::int8_t>(kFp4Numbers[i] + 12);
    return raised;
  }();
};

struct Iq4_NlType : Iq4Numbers<32, 18> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    VisitHalves(rows, start, kBytes, blocks, [&](auto floats, std::size_t i, auto scales) HWY_ATTR {
      out.template accept_scale<0>(floats, i, scales);
    });
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    multiply_pairs(sums, sums.load(2), 0);
  }
};

struct Iq4_XsType : Iq4Numbers<256, 136> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t b = 0; b < blocks; ++b, start += kBytes) {
      const TransposedWords all(rows, start);
      // Bits 2 i and 2 i + 1 of `high` are the highest two bits of scale i.
      const auto high = hn::ShiftRight<16>(all.words[0]);
      const auto low = all.words[1];
      const auto factor = LoadFourHalves(rows, start);
      pass_scale<0>(low, high, factor, out, b * kScales);
      pass_scale<1>(low, high, factor, out, b * kScales);
      pass_scale<2>(low, high, factor, out, b * kScales);
      pass_scale<3>(low, high, factor, out, b * kScales);
      pass_scale<4>(low, high, factor, out, b * kScales);
      pass_scale<5>(low, high, factor, out, b * kScales);
      pass_scale<6>(low, high, factor, out, b * kScales);
      pass_scale<7>(low, high, factor, out, b * kScales);
    }
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t i = 0; i < kScales; ++i) multiply_pairs(sums, sums.load(8 + 16 * i), i);
  }

 private:
  // Passes scale kScale to the sink: a number of six bits, minus 32. `low` has its lower four bits, `high` the other
  // two.
  template <int kScale, class Sink>
  static HWY_INLINE void pass_scale(hn::Vec<FourWords> low, hn::Vec<FourWords> high, hn::Vec<FourFloats> factor,
                                    Sink& out, std::size_t at) {
    const hn::RebindToSigned<FourWords> integers;
    const auto four = hn::And(hn::ShiftRight<4 * kScale>(low), hn::Set(FourWords(), 15));
    const auto two = hn::And(hn::ShiftRight<2 * kScale>(high), hn::Set(FourWords(), 3));
    const auto scale = hn::Sub(hn::BitCast(integers, hn::Or(four, hn::ShiftLeft<4>(two))), hn::Set(integers, 32));
    out.template accept_scale<0>(FourFloats(), at + kScale, hn::Mul(factor, hn::ConvertTo(FourFloats(), scale)));
  }
};

struct Mxfp4Type : Fp4Numbers<32, 17, 32> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t i = 0; i < blocks; ++i, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) out.scales[i][r] = decode_mxfp4_scale(rows[r][start]);
    }
    out.accept_written_scales(blocks);
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes pairs = sums.load(1);
    sums.multiply32(look_up_raised(GetLowHalf(pairs)), look_up_raised(GetHighHalf(pairs)), 0);
  }
};

struct Nvfp4Type : Fp4Numbers<64, 36, 16> {
  template <class Sink>
  static HWY_INLINE void pass_factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Sink& out) {
    for (std::size_t i = 0; i < blocks; ++i, start += kBytes) {
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t j = 0; j < 4; ++j) out.scales[4 * i + j][r] = kScaleOf[rows[r][start + j]];
      }
    }
    out.accept_written_scales(4 * blocks);
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    for (std::size_t i = 0; i < 2; ++i) {
      const hn::Repartition<std::uint64_t, CodeTag> eights;
      const Codes pairs = sums.load(4 + 16 * i);
      const auto low = hn::BitCast(eights, GetLowHalf(pairs));
      const auto high = hn::BitCast(eights, GetHighHalf(pairs));
      sums.multiply16(look_up_raised(hn::BitCast(CodeTag(), hn::InterleaveLower(eights, low, high))), 2 * i);
      sums.multiply16(look_up_raised(hn::BitCast(CodeTag(), hn::InterleaveUpper(eights, low, high))), 2 * i + 1);
    }
  }

 private:
  static constexpr auto kScaleOf = [] {
    std::array<float, 256> scales{};
    for (unsigned code = 0; code < 256; ++code) scales[code] = decode_nvfp4_scale(code);
    return scales;
  }();
};

struct Mx4Type : Fp4Numbers<32, 16, 32> {
  static constexpr bool kScalesApart = true;

  template <class Sink>
  static HWY_INLINE void pass_factors(const StoredRows& matrix, const ScalesApart& which, Sink& out) {
    const std::size_t groups = matrix.columns / kScaled;
    for (std::size_t r = 0; r < 4; ++r) {
      const std::byte* const exponents = matrix.scales + std::min(which.row + r, which.last - 1) * groups + which.first;
      for (std::size_t i = 0; i < which.count; ++i)
        out.scales[i][r] = kMxScaleOf[std::to_integer<std::size_t>(exponents[i])];
    }
    out.accept_written_scales(which.count);
  }
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const Codes pairs = sums.load(0);
    const Codes low = GetLowHalf(pairs);
    const Codes high = GetHighHalf(pairs);
    sums.multiply32(look_up_raised(hn::InterleaveLower(CodeTag(), low, high)),
                    look_up_raised(hn::InterleaveUpper(CodeTag(), low, high)), 0);
  }
};

#endif

const TypeKernels& GetIq4_Nl() { return GetPanelKernels<struct Iq4_NlType, 255, true>(); }
const TypeKernels& GetIq4_Xs() { return GetPanelKernels<struct Iq4_XsType, 255, true>(); }
const TypeKernels& GetMxfp4() { return GetPanelKernels<struct Mxfp4Type, 24>(); }
const TypeKernels& GetNvfp4() { return GetPanelKernels<struct Nvfp4Type, 24>(); }

const TypeKernels& GetMx4() {
  static constexpr TypeKernels kKernels = [] {
    TypeKernels kernels = kOfBlocks<struct Mx4Type>;
    kernels.decode = &DecodeMx4;
    kernels.panels = MakeCodeForm<struct Mx4Type, 24>();
    return kernels;
  }();
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_iq4_nl_kernels, GetIq4_Nl)
POISE_EXPORT_KERNELS(get_iq4_xs_kernels, GetIq4_Xs)
POISE_EXPORT_KERNELS(get_mxfp4_kernels, GetMxfp4)
POISE_EXPORT_KERNELS(get_nvfp4_kernels, GetNvfp4)
POISE_EXPORT_KERNELS(get_mx4_kernels, GetMx4)

}  // namespace poise
#endif
