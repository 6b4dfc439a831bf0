// Multiplies by weights that are stored as integer codes, with one scale and one offset for all codes of the matrix.
#include <algorithm>
#include <memory>

#include "kernels/processor.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"
#include "kernels/integer_sums-inl.hpp"
#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Converts nibbles from 0 to 15 to the signed numbers that they stand for, from -8 to 7.
template <typename Nibbles>
HWY_INLINE auto SignExtend(Nibbles nibbles) {
  const hn::Rebind<std::uint8_t, Floats> codes;
  const hn::Rebind<std::int8_t, Floats> signed_codes;
  const auto bit = hn::Set(codes, 8);
  return hn::BitCast(signed_codes, hn::Sub(hn::Xor(nibbles, bit), bit));
}

// Applies the scale and the offset of integer codes. Loaders of codes derive from this struct.
struct Scaled {
  explicit Scaled(const StoredRows& matrix) : scale(matrix.scale), offset(matrix.offset) {}
  template <typename Codes>
  HWY_INLINE auto apply(Codes codes) const {
    const hn::RebindToSigned<Floats> integers;
    return MulAdd(hn::ConvertTo(Floats(), hn::PromoteTo(integers, codes)), hn::Set(Floats(), scale),
                  hn::Set(Floats(), offset));
  }
  template <bool kSigned, typename Nibbles>
  HWY_INLINE auto apply_to_nibbles(Nibbles nibbles) const {
    if constexpr (kSigned) {
      return apply(SignExtend(nibbles));
    } else {
      return apply(nibbles);
    }
  }
  float scale;
  float offset;
};

template <typename Code>
struct Load8 : Scaled {
  using Scaled::Scaled;
  static std::size_t count_bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    return apply(LoadU(hn::Rebind<Code, Floats>(), reinterpret_cast<const Code*>(row + i)));
  }
};

template <bool kSigned>
struct Load4Bytes : Scaled {
  using Scaled::Scaled;
  static std::size_t count_bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint8_t, Floats> codes;
    return apply_to_nibbles<kSigned>(hn::And(LoadU(codes, row + i), hn::Set(codes, 15)));
  }
};

// Loads packed nibbles. Requires: each row begins with a whole byte.
template <bool kSigned>
struct Load4 : Scaled {
  using Scaled::Scaled;
  static std::size_t count_bytes(std::size_t count) { return (count + 1) / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const { return apply_to_nibbles<kSigned>(LoadNibbles(row, i)); }
  // Returns a single element, with the same rounding as operator().
  float load_element(Bytes data, std::size_t i) const {
    const int code = static_cast<int>(GetNibble(data, i));
    HWY_ALIGN float lanes[kMaxLanes];
    const auto value = hn::Set(Floats(), static_cast<float>(kSigned ? (code ^ 8) - 8 : code));
    hn::Store(MulAdd(value, hn::Set(Floats(), scale), hn::Set(Floats(), offset)), Floats(), lanes);
    return lanes[0];
  }
};

template <bool kSigned>
void DecodeNibbles(const StoredRows& matrix, const DecodedPart& part) {
  if (matrix.columns % 2 == 0) return DecodeRows<Load4<kSigned>>(matrix, part);
  // Every second row begins in the middle of a byte.
  const Load4<kSigned> loader(matrix);
  const Bytes data = reinterpret_cast<Bytes>(matrix.data);
  for (std::size_t r = part.first; r < part.last; ++r) {
    std::size_t element = r * matrix.columns + part.begin;
    std::size_t count = part.count;
    float* to = part.out + (r - part.first) * part.stride;
    if (element % 2 != 0) {
      *to++ = loader.load_element(data, element++);
      --count;
    }
    DecodeElements(loader, data + element / 2, 0, count, to);
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class Unpack>
constexpr MultiplyFew<KernelInput::Words> kOfCodes = nullptr;

template <bool kSigned>
struct EightBitType;
template <bool kSigned>
struct NibbleType;
template <bool kSigned>
struct LowNibbleType;

#else

// Converts sums of codes times x, of four rows, to results: a weight is code * scale + offset.
HWY_INLINE FourSums ApplyScale(const StoredRows& matrix, FourSums sums, const float* sum_of_x) {
  const FourSums::Tag tag;
  return FourSums(MulAdd(sums.lanes, hn::Set(tag, matrix.scale), hn::Set(tag, matrix.offset * sum_of_x[0])));
}

template <bool kVnni, class Unpack>
void MultiplyCodes(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                   float* y, std::size_t stride) {
  const std::size_t row_bytes = CountRowBytes<Unpack>(matrix);
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    NextRows next(four.rows[0]);
    FourSums totals[KernelInput::kFewTokens];
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t begin = b * (2 * kBlock / Unpack::kPlanes);
      const std::size_t bytes = std::min(row_bytes - begin, 2 * kBlock / Unpack::kPlanes);
      VisitTokens<kFewTogether>(in.tokens, [&](auto count, std::size_t t) HWY_ATTR {
        constexpr std::size_t kRows = ChooseRowsTogether(count());
        const PlanesOfX x = {in.get_integers(t, b), in.count_integers(b) / Unpack::kPlanes, in.blocks() * kBlock};
        hn::Vec<hn::RebindToFloat<Products>> sums[count()][4];
        for (std::size_t at = 0; at < 4; at += kRows) {
          ExactSums<kVnni, Words, kRows, count()> exact;
          exact.template add_bytes<Unpack>(four.rows + at, bytes, next, begin, x);
          for (std::size_t k = 0; k < count(); ++k) {
            for (std::size_t i = 0; i < kRows; ++i) sums[k][at + i] = exact.of[k][i].convert_total();
          }
        }
        for (std::size_t k = 0; k < count(); ++k)
          totals[t + k].add_product(in.get_scale(t + k, b),
                                    FourSums::sum_lanes(hn::RebindToFloat<Products>(), sums[k]));
      });
    }
    for (std::size_t t = 0; t < in.tokens; ++t)
      ApplyScale(matrix, totals[t], in.get_sums(t)).store(y + t * stride + (r - first), last - r);
  }
}

// Multiplies packed nibbles of an odd number of columns. Every second row begins in the middle of a byte, so the
// function copies rows, to begin each with a whole byte.
template <bool kVnni, class Unpack>
void MultiplyCutNibbles(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                        float* y, std::size_t stride) {
  const std::size_t row_bytes = CountRowBytes<Unpack>(matrix);
  const Bytes data = reinterpret_cast<Bytes>(matrix.data);
  const auto row = std::make_unique<std::uint8_t[]>(row_bytes);
  StoredRows alone = matrix;
  alone.data = reinterpret_cast<const std::byte*>(row.get());
  for (std::size_t r = first; r < last; ++r) {
    std::fill_n(row.get(), row_bytes, std::uint8_t{0});
    for (std::size_t i = 0; i < matrix.columns; ++i) {
      const std::size_t element = r * matrix.columns + i;
      const unsigned code = element % 2 == 0 ? data[element / 2] & 15U : data[element / 2] >> 4U;
      row[i / 2] = static_cast<std::uint8_t>(row[i / 2] | (i % 2 == 0 ? code : code << 4U));
    }
    MultiplyCodes<kVnni, Unpack>(alone, 0, 1, in, y + (r - first), stride);
  }
}

template <bool kVnni, class Unpack>
void MultiplyWords(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                   float* y, std::size_t stride) {
  if constexpr (Unpack::kPlanes == 4) {
    if (matrix.columns % 2 != 0) return MultiplyCutNibbles<kVnni, Unpack>(matrix, first, last, in, y, stride);
  }
  MultiplyCodes<kVnni, Unpack>(matrix, first, last, in, y, stride);
}

template <class Unpack>
void MultiplyAnyWords(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                      float* y, std::size_t stride) {
#if POISE_HAVE_VNNI
  if (has_vnni()) return MultiplyWords<true, Unpack>(matrix, first, last, in, y, stride);
#endif
  MultiplyWords<false, Unpack>(matrix, first, last, in, y, stride);
}

template <class Unpack>
constexpr MultiplyFew<KernelInput::Words> kOfCodes = &MultiplyAnyWords<Unpack>;

// Describes 32 columns of codes for ExpandCodes(). kTaken is added to signed codes, so that none is below 0. Unsigned
// codes have the matrix's offset as their minimum.
template <std::size_t kStoredBytes, bool kMins, int kTaken>
struct PlainCodes {
  template <std::size_t kTokens>
  using Sums = WordSums<kTokens>;
  static constexpr std::size_t kElements = 32;
  static constexpr std::size_t kBytes = kStoredBytes;
  static constexpr std::size_t kScaled = 0;  // the matrix has one scale
  static constexpr bool kHasMins = kMins;
  static constexpr int kOffset = kTaken;
  static constexpr bool kFactorsOfMatrix = true;

  static void store_factors(const StoredRows& matrix, const CodePart& part) {
    const std::size_t count = part.count / part.step * kCodeRows;
    std::fill_n(part.scales, count, matrix.scale);
    if constexpr (kMins) std::fill_n(part.mins, count, matrix.offset);
  }
};

template <bool kSigned>
struct EightBitType : PlainCodes<32, !kSigned, kSigned ? 128 : 0> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const auto flipped = hn::Set(CodeTag(), kSigned ? 128 : 0);
    sums.multiply32(hn::Xor(sums.load(0), flipped), hn::Xor(sums.load(16), flipped), 0);
  }
};

template <bool kSigned>
struct NibbleType : PlainCodes<16, !kSigned, kSigned ? 8 : 0> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    MultiplyNibblePairs(sums, hn::Xor(sums.load(0), hn::Set(CodeTag(), kSigned ? 0x88 : 0)));
  }
};

template <bool kSigned>
struct LowNibbleType : PlainCodes<32, !kSigned, kSigned ? 8 : 0> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    const auto flipped = hn::Set(CodeTag(), kSigned ? 8 : 0);
    sums.multiply32(GetLowHalf(hn::Xor(sums.load(0), flipped)), GetLowHalf(hn::Xor(sums.load(16), flipped)), 0);
  }
};

#endif

template <auto kDecode, class Unpack, class Type, std::uint8_t kLargest>
const TypeKernels& GetKernelsFor() {
  static constexpr TypeKernels kKernels = {
      .decode = kDecode, .multiply_words = kOfCodes<Unpack>, .panels = MakeCodeForm<Type, kLargest>()};
  return kKernels;
}

const TypeKernels& GetI8() {
  return GetKernelsFor<&DecodeRows<Load8<std::int8_t>>, EightBits<true>, EightBitType<true>, 255>();
}
const TypeKernels& GetU8() {
  return GetKernelsFor<&DecodeRows<Load8<std::uint8_t>>, EightBits<false>, EightBitType<false>, 255>();
}
const TypeKernels& GetI4() { return GetKernelsFor<&DecodeNibbles<true>, FourBits<true, 4>, NibbleType<true>, 15>(); }
const TypeKernels& GetU4() { return GetKernelsFor<&DecodeNibbles<false>, FourBits<false, 4>, NibbleType<false>, 15>(); }
const TypeKernels& GetI4Bytes() {
  return GetKernelsFor<&DecodeRows<Load4Bytes<true>>, FourBits<true, 8>, LowNibbleType<true>, 15>();
}
const TypeKernels& GetU4Bytes() {
  return GetKernelsFor<&DecodeRows<Load4Bytes<false>>, FourBits<false, 8>, LowNibbleType<false>, 15>();
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_i8_kernels, GetI8)
POISE_EXPORT_KERNELS(get_u8_kernels, GetU8)
POISE_EXPORT_KERNELS(get_i4_kernels, GetI4)
POISE_EXPORT_KERNELS(get_u4_kernels, GetU4)
POISE_EXPORT_KERNELS(get_i4_bytes_kernels, GetI4Bytes)
POISE_EXPORT_KERNELS(get_u4_bytes_kernels, GetU4Bytes)

}  // namespace poise
#endif
