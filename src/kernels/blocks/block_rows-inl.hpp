// Loads rows of ggml's blocks into vectors: codes, and the factors (scales and minimums) of four rows. Multiplies codes
// by x of 8 bits. Each sixteen bytes of a vector belong to one row; a vector has one, two or four rows.
#if defined(POISE_KERNELS_BLOCK_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_BLOCK_ROWS
#undef POISE_KERNELS_BLOCK_ROWS
#else
#define POISE_KERNELS_BLOCK_ROWS
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/integer_sums-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using CodeTag = hn::CappedTag<std::uint8_t, 64>;
using Codes = hn::Vec<CodeTag>;
using CodeSigned = hn::RebindToSigned<CodeTag>;
using CodeWords = hn::Repartition<std::int16_t, CodeTag>;
using CodeInts = hn::Repartition<std::int32_t, CodeTag>;
using CodeSums = hn::Repartition<float, CodeTag>;
using FourFloats = hn::FixedTag<float, 4>;
using FourWords = hn::FixedTag<std::uint32_t, 4>;

constexpr std::size_t kRowsOfVector = hn::MaxLanes(CodeTag()) / 16;
constexpr std::size_t kVectors = 4 / kRowsOfVector;

// Returns the float16 number at byte `at` of each row, as float32.
HWY_INLINE hn::Vec<FourFloats> LoadFourHalves(const Bytes (&rows)[4], std::size_t at) {
  std::uint64_t halves = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    std::uint16_t half = 0;
    std::memcpy(&half, rows[r] + at, sizeof half);
    halves |= std::uint64_t{half} << (16 * r);
  }
  return ConvertHalves(FourFloats(), hn::BitCast(hn::Rebind<std::uint16_t, FourFloats>(),
                                                 hn::Set(hn::FixedTag<std::uint64_t, 1>(), halves)));
}

// Returns a vector with the sixteen bytes from byte `at` on of each row.
template <class D>
HWY_INLINE hn::Vec<D> LoadRows(D tag, const Bytes* rows, std::size_t at) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return LoadU(tag, rows[0] + at);
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, LoadRows(half, rows + hn::MaxLanes(half) / 16, at), LoadRows(half, rows, at));
  }
}

// Reads a float16 number of each row from each of `count` blocks: that of block i is at byte at + i * stride. Calls
// accept(tag, i, numbers) with the four numbers of block i, or with the eight numbers of blocks i and i + 1.
template <class Accept>
HWY_INLINE void VisitHalves(const Bytes (&rows)[4], std::size_t at, std::size_t stride, std::size_t count,
                            Accept accept) {
  std::size_t i = 0;
#if HWY_ARCH_X86 && HWY_CAP_GE256
  const auto half = [&](std::size_t row, std::size_t from) HWY_ATTR {
    std::uint16_t bits = 0;
    std::memcpy(&bits, rows[row] + from, sizeof bits);
    return bits;
  };
  for (; i + 2 <= count; i += 2, at += 2 * stride) {
    __m128i halves = _mm_cvtsi32_si128(half(0, at));
    halves = _mm_insert_epi16(halves, half(1, at), 1);
    halves = _mm_insert_epi16(halves, half(2, at), 2);
    halves = _mm_insert_epi16(halves, half(3, at), 3);
    halves = _mm_insert_epi16(halves, half(0, at + stride), 4);
    halves = _mm_insert_epi16(halves, half(1, at + stride), 5);
    halves = _mm_insert_epi16(halves, half(2, at + stride), 6);
    halves = _mm_insert_epi16(halves, half(3, at + stride), 7);
    const hn::FixedTag<float, 8> eight;
    accept(eight, i, ConvertHalves(eight, hn::Vec128<std::uint16_t>{halves}));
  }
#endif
  for (; i < count; ++i, at += stride) accept(FourFloats(), i, LoadFourHalves(rows, at));
}

// Holds sixteen bytes of each row, transposed: word r of the i-th vector is word i of row r.
struct TransposedWords {
  hn::Vec<FourWords> words[4];

  HWY_INLINE TransposedWords(const Bytes (&rows)[4], std::size_t at) {
    const FourWords tag;
    const hn::Repartition<std::uint64_t, FourWords> pairs;
    const auto load = [&](std::size_t r)
                          HWY_ATTR { return hn::BitCast(tag, LoadU(hn::FixedTag<std::uint8_t, 16>(), rows[r] + at)); };
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(tag, load(0), load(1)));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(tag, load(2), load(3)));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(tag, load(0), load(1)));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, load(2), load(3)));
    words[0] = hn::BitCast(tag, hn::InterleaveLower(pairs, low01, low23));
    words[1] = hn::BitCast(tag, hn::InterleaveUpper(pairs, low01, low23));
    words[2] = hn::BitCast(tag, hn::InterleaveLower(pairs, high01, high23));
    words[3] = hn::BitCast(tag, hn::InterleaveUpper(pairs, high01, high23));
  }
};

// Multiplies the four signed bytes of word r by factors[r], for each of four rows. Calls accept(which, tag, i, numbers)
// with the four products of the i-th bytes, or with the eight products of bytes i and i + 1. `which` alternates between
// 0 and 1.
template <class Accept>
HWY_INLINE void ScaleBytes(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Accept accept) {
  using Zero = std::integral_constant<int, 0>;
  using One = std::integral_constant<int, 1>;
#if HWY_CAP_GE256
  const hn::FixedTag<float, 8> eight;
  const hn::FixedTag<std::uint8_t, 16> all;
  const hn::FixedTag<std::int8_t, 8> half;
  alignas(16) static constexpr std::uint8_t kTransposed[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto transposed = hn::BitCast(hn::FixedTag<std::int8_t, 16>(),
                                      hn::TableLookupBytes(hn::BitCast(all, bytes), hn::Load(all, kTransposed)));
  const auto twice = hn::Combine(eight, factors, factors);
  const auto numbers = [&](auto eight_bytes) HWY_ATTR {
    return hn::Mul(twice, hn::ConvertTo(eight, hn::PromoteTo(hn::FixedTag<std::int32_t, 8>(), eight_bytes)));
  };
  accept(Zero(), eight, 0, numbers(hn::LowerHalf(half, transposed)));
  accept(One(), eight, 2, numbers(hn::UpperHalf(half, transposed)));
#else
  const hn::RebindToSigned<FourWords> integers;
  const auto signed_bytes = hn::BitCast(integers, bytes);
  const auto numbers = [&](auto words) HWY_ATTR {
    return hn::Mul(factors, hn::ConvertTo(FourFloats(), hn::ShiftRight<24>(words)));
  };
  accept(Zero(), FourFloats(), 0, numbers(hn::ShiftLeft<24>(signed_bytes)));
  accept(One(), FourFloats(), 1, numbers(hn::ShiftLeft<16>(signed_bytes)));
  accept(Zero(), FourFloats(), 2, numbers(hn::ShiftLeft<8>(signed_bytes)));
  accept(One(), FourFloats(), 3, numbers(signed_bytes));
#endif
}

// Passes the scales of groups `at` to at + 3 to the sink, as ScaleBytes() computes them.
template <class Sink>
HWY_INLINE void PassScales(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Sink& out, std::size_t at) {
  ScaleBytes(bytes, factors, [&](auto which, auto floats, std::size_t i, auto numbers) HWY_ATTR {
    out.template accept_scale<decltype(which)::value>(floats, at + i, numbers);
  });
}
// Does the same with minimums.
template <class Sink>
HWY_INLINE void PassMins(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Sink& out, std::size_t at) {
  ScaleBytes(bytes, factors, [&](auto which, auto floats, std::size_t i, auto numbers) HWY_ATTR {
    out.template accept_min<decltype(which)::value>(floats, at + i, numbers);
  });
}

// Refers to scales [first, first + count) of rows [row, row + 4). Row last - 1 replaces rows from `last` on.
struct ScalesApart {
  std::size_t row;
  std::size_t last;
  std::size_t first;
  std::size_t count;
};

// Each function returns four bits of each byte.

HWY_INLINE Codes GetLowHalf(Codes codes) { return hn::And(codes, hn::Set(CodeTag(), 15)); }
HWY_INLINE Codes GetHighHalf(Codes codes) { return hn::ShiftRight<4>(codes); }

// Multiplies 32 codes of four bits, which have one scale. The low half of a byte is the code of an even column.
template <class Into>
HWY_INLINE void MultiplyNibblePairs(Into& sums, Codes pairs) {
  const Codes low = GetLowHalf(pairs);
  const Codes high = GetHighHalf(pairs);
  sums.multiply32(hn::InterleaveLower(CodeTag(), low, high), hn::InterleaveUpper(CodeTag(), low, high), 0);
}

// Returns the bits of `mask` in each byte, shifted by kBits: to the left if kBits is positive, else to the right.
// Requires: the bits stay within the byte.
template <int kBits>
HWY_INLINE Codes MaskAndShift(Codes codes, int mask) {
  const hn::Repartition<std::uint16_t, CodeTag> words;
  const auto bits = hn::And(codes, hn::Set(CodeTag(), static_cast<std::uint8_t>(mask)));
  if constexpr (kBits == 0) return bits;
  if constexpr (kBits > 0) return hn::BitCast(CodeTag(), hn::ShiftLeft<kBits>(hn::BitCast(words, bits)));
  if constexpr (kBits < 0) return hn::BitCast(CodeTag(), hn::ShiftRight<-kBits>(hn::BitCast(words, bits)));
}

// Spreads 16 bits of each row over 16 bytes: byte i is 0xff if bit i is 1, else 0. Bits 0 to 7 are in byte kFirst of
// the row's sixteen bytes, bits 8 to 15 in byte kSecond.
template <std::uint8_t kFirst, std::uint8_t kSecond>
HWY_INLINE Codes SpreadBits(Codes bytes) {
  alignas(16) static constexpr std::uint8_t kPlaces[16] = {kFirst,  kFirst,  kFirst,  kFirst,  kFirst,  kFirst,
                                                           kFirst,  kFirst,  kSecond, kSecond, kSecond, kSecond,
                                                           kSecond, kSecond, kSecond, kSecond};
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto bits = hn::LoadDup128(CodeTag(), kBits);
  const auto spread = hn::TableLookupBytes(bytes, hn::LoadDup128(CodeTag(), kPlaces));
  return hn::VecFromMask(CodeTag(), hn::Eq(hn::And(spread, bits), bits));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
HWY_INLINE hn::Vec128<std::int16_t> MultiplyPairs(hn::Vec128<std::uint8_t> codes, hn::Vec128<std::int8_t> x) {
  return hn::Vec128<std::int16_t>{_mm_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec128<std::int8_t> ChangeSigns(hn::Vec128<std::int8_t> x, hn::Vec128<std::int8_t> numbers) {
  return hn::Vec128<std::int8_t>{_mm_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<std::int16_t> MultiplyPairs(hn::Vec256<std::uint8_t> codes, hn::Vec256<std::int8_t> x) {
  return hn::Vec256<std::int16_t>{_mm256_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec256<std::int8_t> ChangeSigns(hn::Vec256<std::int8_t> x, hn::Vec256<std::int8_t> numbers) {
  return hn::Vec256<std::int8_t>{_mm256_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<std::int16_t> MultiplyPairs(hn::Vec512<std::uint8_t> codes, hn::Vec512<std::int8_t> x) {
  return hn::Vec512<std::int16_t>{_mm512_maddubs_epi16(codes.raw, x.raw)};
}
#endif

// Multiplies unsigned codes by signed x of 8 bits, and adds the products of two neighbouring columns. Requires: the
// magnitude of such a sum is at most 32767.
HWY_INLINE hn::Vec<CodeWords> MultiplyAddPairs(Codes codes, hn::Vec<CodeSigned> x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return MultiplyPairs(codes, x);
#else
  const auto words = hn::BitCast(CodeWords(), codes);
  const auto numbers = hn::BitCast(CodeWords(), x);
  const auto even = hn::Mul(EightBits<false>::extract_plane<0>(words), EightBits<true>::extract_plane<0>(numbers));
  return hn::Add(even, hn::Mul(EightBits<false>::extract_plane<1>(words), EightBits<true>::extract_plane<1>(numbers)));
#endif
}

// Returns x with its sign changed where `numbers` are below 0. Where one is 0, the result may be x or 0. Requires: x is
// more than -128.
HWY_INLINE hn::Vec<CodeSigned> ApplySigns(hn::Vec<CodeSigned> x, hn::Vec<CodeSigned> numbers) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3 && HWY_TARGET > HWY_AVX3
  return ChangeSigns(x, numbers);
#else
  const auto minus = hn::VecFromMask(CodeSigned(), hn::Lt(numbers, hn::Zero(CodeSigned())));
  return hn::Sub(hn::Xor(x, minus), minus);
#endif
}

// Returns sums of two words of the same row. On x86 these are neighbours: words 0 and 1, words 2 and 3, and so on.
HWY_INLINE hn::Vec<CodeInts> SumPairs(hn::Vec<CodeWords> words) {
  auto odd = hn::Zero(CodeInts());
  const auto even =
      hn::ReorderWidenMulAccumulate(CodeInts(), words, hn::Set(CodeWords(), 1), hn::Zero(CodeInts()), odd);
  return hn::Add(even, odd);
}

// Returns sums of products of neighbours: of words 0 and 1, of words 2 and 3 and so on.
HWY_INLINE hn::Vec<CodeInts> MultiplyAddNeighbours(hn::Vec<CodeWords> a, hn::Vec<CodeWords> b) {
#if HWY_ARCH_X86
  auto none = hn::Zero(CodeInts());
  return hn::ReorderWidenMulAccumulate(CodeInts(), a, b, hn::Zero(CodeInts()),
                                       none);  // adds neighbours on x86 only
#else
  const auto even = [](hn::Vec<CodeWords> words)
                        HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(CodeInts(), words))); };
  const auto odd = [](hn::Vec<CodeWords> words) HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(CodeInts(), words)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
