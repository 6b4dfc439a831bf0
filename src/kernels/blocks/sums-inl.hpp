// Products of rows of ggml's blocks with one token's x as integers. Each type of block gives the places of its codes
// and scales.
//
// Sixteen bytes of a vector belong to one row. A vector takes one, two or four rows, and a row's sums have the same
// order on every processor. Products of codes and x that share a scale are summed exactly, as integers; times the scale
// they are added in float32.
#if defined(POISE_KERNELS_BLOCK_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_BLOCK_SUMS
#undef POISE_KERNELS_BLOCK_SUMS
#else
#define POISE_KERNELS_BLOCK_SUMS
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/blocks/block_kernels.hpp"
#include "kernels/halves-inl.hpp"
#include "kernels/integer_sums-inl.hpp"

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

// A float16 number of each row.
HWY_INLINE hn::Vec<FourFloats> FourHalves(const Bytes (&rows)[4], std::size_t at) {
  std::uint64_t halves = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    std::uint16_t half = 0;
    std::memcpy(&half, rows[r] + at, sizeof half);
    halves |= std::uint64_t{half} << (16 * r);
  }
  return HalvesToFloats(FourFloats(), hn::BitCast(hn::Rebind<std::uint16_t, FourFloats>(),
                                                  hn::Set(hn::FixedTag<std::uint64_t, 1>(), halves)));
}

// Receives the factors of groups of columns for four rows. Stores scales for multiply(), with x of 8 bits multiplied by
// those of x. Multiplies minimums, or offsets of codes, by sums of x and adds them up. A vector has the factors of one
// group or two.
template <class Type>
struct FactorSink {
  using EightFloats = hn::CappedTag<float, 8>;
  float (*scales)[4];
  const float* x_scales;
  const float* x_sums;
  hn::Vec<FourFloats> sum;
  hn::Vec<EightFloats> sums[2];

  explicit HWY_INLINE FactorSink(float (*to)[4])
      : scales(to),
        x_scales(nullptr),
        x_sums(nullptr),
        sum(hn::Zero(FourFloats())),
        sums{hn::Zero(EightFloats()), hn::Zero(EightFloats())} {}

  // Begins with the columns of the b-th kBlock.
  HWY_INLINE void begin(const KernelInput& in, std::size_t b) {
    if constexpr (Type::Sums::kBytes) {
      x_scales = in.byte_scales() + 4 * b * (kBlock / Type::kScaled);
      x_sums = in.byte_sums() + 4 * b * (kBlock / Type::kScaled);
    }
  }
  // For the i-th group (in a vector of eight, also the next). Vectors of even and odd kWhich are independent.
  template <int kWhich, class D>
  HWY_INLINE void scale(D floats, std::size_t i, hn::Vec<D> factors) {
    if constexpr (Type::kOffset != 0) weigh<kWhich>(floats, i, factors);
    if constexpr (Type::Sums::kBytes) factors = hn::Mul(factors, LoadU(floats, x_scales + 4 * i));
    hn::Store(factors, floats, scales[i]);
  }
  template <int kWhich, class D>
  HWY_INLINE void min(D floats, std::size_t i, hn::Vec<D> factors) {
    weigh<kWhich>(floats, i, factors);
  }
  // `scales` has received the scales of `count` groups one by one.
  HWY_INLINE void rescale(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) scale<0>(FourFloats(), i, hn::Load(FourFloats(), scales[i]));
  }
  HWY_INLINE hn::Vec<FourFloats> total() const {
    return hn::Add(sum, FourSums::sum_of_blocks(EightFloats(), hn::Add(sums[0], sums[1])));
  }

 private:
  template <int kWhich, class D>
  HWY_INLINE void weigh(D floats, std::size_t i, hn::Vec<D> factors) {
    const auto x = LoadU(floats, x_sums + 4 * i);
    if constexpr (hn::MaxLanes(D()) == 4) {
      sum = MulAdd(factors, x, sum);
    } else {
      sums[kWhich] = MulAdd(factors, x, sums[kWhich]);
    }
  }
};

// Calls put(tag, i, numbers) with a float16 number of each row, of `count` blocks that begin at `at` and are `stride`
// bytes apart: those of block i, in a vector of eight of the next one, too.
template <class Put>
HWY_INLINE void ForHalves(const Bytes (&rows)[4], std::size_t at, std::size_t stride, std::size_t count, Put put) {
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
    put(eight, i, HalvesToFloats(eight, hn::Vec128<std::uint16_t>{halves}));
  }
#endif
  for (; i < count; ++i, at += stride) put(FourFloats(), i, FourHalves(rows, at));
}

// Sixteen bytes of each row, turned: word r of the i-th vector is word i of row r.
struct TurnedWords {
  hn::Vec<FourWords> words[4];

  HWY_INLINE TurnedWords(const Bytes (&rows)[4], std::size_t at) {
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

// Calls put(which, tag, i, numbers): factors[r] times the i-th byte of word r, which is a number of 8 bits and a sign
// at most, for four rows; of a vector of eight, and then byte i + 1.
template <class Put>
HWY_INLINE void ScaleBytes(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Put put) {
  using Zero = std::integral_constant<int, 0>;
  using One = std::integral_constant<int, 1>;
#if HWY_CAP_GE256
  const hn::FixedTag<float, 8> eight;
  const hn::FixedTag<std::uint8_t, 16> all;
  const hn::FixedTag<std::int8_t, 8> half;
  alignas(16) static constexpr std::uint8_t kTurned[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto turned = hn::BitCast(hn::FixedTag<std::int8_t, 16>(),
                                  hn::TableLookupBytes(hn::BitCast(all, bytes), hn::Load(all, kTurned)));
  const auto twice = hn::Combine(eight, factors, factors);
  const auto numbers = [&](auto eight_bytes) HWY_ATTR {
    return hn::Mul(twice, hn::ConvertTo(eight, hn::PromoteTo(hn::FixedTag<std::int32_t, 8>(), eight_bytes)));
  };
  put(Zero(), eight, 0, numbers(hn::LowerHalf(half, turned)));
  put(One(), eight, 2, numbers(hn::UpperHalf(half, turned)));
#else
  const hn::RebindToSigned<FourWords> integers;
  const auto signed_bytes = hn::BitCast(integers, bytes);
  const auto numbers = [&](auto words) HWY_ATTR {
    return hn::Mul(factors, hn::ConvertTo(FourFloats(), hn::ShiftRight<24>(words)));
  };
  put(Zero(), FourFloats(), 0, numbers(hn::ShiftLeft<24>(signed_bytes)));
  put(One(), FourFloats(), 1, numbers(hn::ShiftLeft<16>(signed_bytes)));
  put(Zero(), FourFloats(), 2, numbers(hn::ShiftLeft<8>(signed_bytes)));
  put(One(), FourFloats(), 3, numbers(signed_bytes));
#endif
}

// The scales of groups `at` to at + 3.
template <class Sink>
HWY_INLINE void PutScales(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Sink& out, std::size_t at) {
  ScaleBytes(bytes, factors, [&](auto which, auto floats, std::size_t i, auto numbers) HWY_ATTR {
    out.template scale<decltype(which)::value>(floats, at + i, numbers);
  });
}
// Their minimums.
template <class Sink>
HWY_INLINE void PutMins(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, Sink& out, std::size_t at) {
  ScaleBytes(bytes, factors, [&](auto which, auto floats, std::size_t i, auto numbers) HWY_ATTR {
    out.template min<decltype(which)::value>(floats, at + i, numbers);
  });
}

// Sixteen bytes of each row in a vector.
template <class D>
HWY_INLINE hn::Vec<D> LoadRows(D tag, const Bytes* rows, std::size_t at) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return LoadU(tag, rows[0] + at);
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, LoadRows(half, rows + hn::MaxLanes(half) / 16, at), LoadRows(half, rows, at));
  }
}

// The factors and results of a block, for the rows of one vector.
struct RowSums {
  const Bytes* rows;
  std::size_t start;         // of the block in a row
  const float (*scales)[4];  // of the block
  std::size_t vector;        // which rows these are

  HWY_INLINE RowSums()
      : rows(nullptr), start(0), scales(nullptr), vector(0), sum_(hn::Zero(CodeSums())), before_(sum_) {}

  HWY_INLINE Codes load(std::size_t at) const { return LoadRows(CodeTag(), rows, start + at); }

  // Ends the sums of products with the i-th scale.
  HWY_INLINE void finish(hn::Vec<CodeInts> total, std::size_t i) {
    const auto next = MulAdd(hn::ConvertTo(CodeSums(), total), scale(i), before_);
    before_ = sum_;
    sum_ = next;
  }
  HWY_INLINE hn::Vec<CodeSums> sum() const { return hn::Add(sum_, before_); }

  // Of each row the i-th.
  HWY_INLINE hn::Vec<CodeSums> scale(std::size_t i) const {
    if constexpr (kRowsOfVector == 1) {
      return hn::Set(CodeSums(), scales[i][vector]);
    } else {
      alignas(64) static constexpr std::uint8_t kPlaces[64] = {
          0, 1, 2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  4,  5,  6,  7, 4,  5,
          6, 7, 4,  5,  6,  7,  4,  5,  6,  7,  8,  9,  10, 11, 8,  9,  10, 11, 8,  9, 10, 11,
          8, 9, 10, 11, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15};
      const auto places = hn::Load(CodeTag(), kPlaces + 16 * kRowsOfVector * vector);
      return hn::BitCast(CodeSums(),
                         hn::TableLookupBytes(hn::BitCast(CodeTag(), hn::LoadDup128(CodeSums(), scales[i])), places));
    }
  }

 private:
  // two sums alternate, to overlap
  hn::Vec<CodeSums> sum_;
  hn::Vec<CodeSums> before_;
};

// With x of 15 bits.
struct WordSums : RowSums {
  static constexpr bool kBytes = false;
  const std::int16_t* even;  // x of the block's even columns
  const std::int16_t* odd;   // and of the odd ones

  HWY_INLINE WordSums() : even(nullptr), odd(nullptr) {}

  // Goes to x of the b-th kBlock of columns; advance() goes on by so many columns.
  HWY_INLINE void begin(const KernelInput& in, std::size_t b) {
    even = in.integers(b);
    odd = even + in.integers_of(b) / 2;
  }
  HWY_INLINE void advance(std::size_t columns) {
    even += columns / 2;
    odd += columns / 2;
  }

  using Sum = ExactSum<false, CodeWords>;

  // Adds sixteen signed codes times x of the i-th sixteen columns.
  HWY_INLINE void add(Sum& scaled, Codes codes, std::size_t i) const {
    const auto words = hn::BitCast(CodeWords(), codes);
    scaled.add(EightBits<true>::plane<0>(words), hn::LoadDup128(CodeWords(), even + 8 * i));
    scaled.add(EightBits<true>::plane<1>(words), hn::LoadDup128(CodeWords(), odd + 8 * i));
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
HWY_INLINE hn::Vec128<std::int16_t> MultiplyPairs(hn::Vec128<std::uint8_t> codes, hn::Vec128<std::int8_t> x) {
  return hn::Vec128<std::int16_t>{_mm_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec128<std::int8_t> TakeSigns(hn::Vec128<std::int8_t> x, hn::Vec128<std::int8_t> numbers) {
  return hn::Vec128<std::int8_t>{_mm_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<std::int16_t> MultiplyPairs(hn::Vec256<std::uint8_t> codes, hn::Vec256<std::int8_t> x) {
  return hn::Vec256<std::int16_t>{_mm256_maddubs_epi16(codes.raw, x.raw)};
}
HWY_INLINE hn::Vec256<std::int8_t> TakeSigns(hn::Vec256<std::int8_t> x, hn::Vec256<std::int8_t> numbers) {
  return hn::Vec256<std::int8_t>{_mm256_sign_epi8(x.raw, numbers.raw)};
}
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<std::int16_t> MultiplyPairs(hn::Vec512<std::uint8_t> codes, hn::Vec512<std::int8_t> x) {
  return hn::Vec512<std::int16_t>{_mm512_maddubs_epi16(codes.raw, x.raw)};
}
#endif

// Products of unsigned codes and signed x of 8 bits, those of two columns added. Requires: these come to 32767 at most.
HWY_INLINE hn::Vec<CodeWords> PairProducts(Codes codes, hn::Vec<CodeSigned> x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return MultiplyPairs(codes, x);
#else
  const auto words = hn::BitCast(CodeWords(), codes);
  const auto numbers = hn::BitCast(CodeWords(), x);
  const auto even = hn::Mul(EightBits<false>::plane<0>(words), EightBits<true>::plane<0>(numbers));
  return hn::Add(even, hn::Mul(EightBits<false>::plane<1>(words), EightBits<true>::plane<1>(numbers)));
#endif
}

// x with its sign changed where a number is below 0; any x where it is 0. Requires: x is more than -128.
HWY_INLINE hn::Vec<CodeSigned> WithSigns(hn::Vec<CodeSigned> x, hn::Vec<CodeSigned> numbers) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3 && HWY_TARGET > HWY_AVX3
  return TakeSigns(x, numbers);
#else
  const auto minus = hn::VecFromMask(CodeSigned(), hn::Lt(numbers, hn::Zero(CodeSigned())));
  return hn::Sub(hn::Xor(x, minus), minus);
#endif
}

// With x of 8 bits.
struct ByteSums : RowSums {
  static constexpr bool kBytes = true;
  const std::int8_t* x;  // of the block's columns

  HWY_INLINE ByteSums() : x(nullptr) {}

  HWY_INLINE void begin(const KernelInput& in, std::size_t b) { x = in.bytes() + b * kBlock; }
  HWY_INLINE void advance(std::size_t columns) { x += columns; }

  // x of the i-th sixteen columns.
  HWY_INLINE hn::Vec<CodeSigned> x_of(std::size_t i) const { return hn::LoadDup128(CodeSigned(), x + 16 * i); }

  // Products of sixteen unsigned codes and x of the i-th sixteen columns, in pairs.
  HWY_INLINE hn::Vec<CodeWords> pairs(Codes codes, std::size_t i) const { return PairProducts(codes, x_of(i)); }
  // The same for signed numbers. Requires: none is -128.
  HWY_INLINE hn::Vec<CodeWords> signed_pairs(Codes numbers, std::size_t i) const {
    const auto with_signs = hn::BitCast(CodeSigned(), numbers);
    return PairProducts(hn::BitCast(CodeTag(), hn::Abs(with_signs)), WithSigns(x_of(i), with_signs));
  }

  static HWY_INLINE hn::Vec<CodeInts> fours(hn::Vec<CodeWords> pairs) {
    auto odd = hn::Zero(CodeInts());
    const auto even =
        hn::ReorderWidenMulAccumulate(CodeInts(), pairs, hn::Set(CodeWords(), 1), hn::Zero(CodeInts()), odd);
    return hn::Add(even, odd);
  }

  // Sixteen codes of the i-th scale, each at most 128.
  HWY_INLINE void multiply16(Codes codes, std::size_t i) { finish(fours(pairs(codes, i)), i); }
  // 32 codes of the i-th scale, each at most 64: sums of four products have 16 bits.
  HWY_INLINE void multiply32(Codes first, Codes second, std::size_t i) {
    finish(fours(hn::Add(pairs(first, 2 * i), pairs(second, 2 * i + 1))), i);
  }
  // 32 signed numbers, none of which is -128.
  HWY_INLINE void multiply_signed32(Codes first, Codes second, std::size_t i) {
    finish(hn::Add(fours(signed_pairs(first, 2 * i)), fours(signed_pairs(second, 2 * i + 1))), i);
  }
};

// Sums of products of neighbours: of words 0 and 1, of words 2 and 3 and so on.
HWY_INLINE hn::Vec<CodeInts> NeighbourProducts(hn::Vec<CodeWords> a, hn::Vec<CodeWords> b) {
#if HWY_ARCH_X86
  auto none = hn::Zero(CodeInts());
  return hn::ReorderWidenMulAccumulate(CodeInts(), a, b, hn::Zero(CodeInts()),
                                       none);  // this order is specific to x86
#else
  const auto even = [](hn::Vec<CodeWords> words)
                        HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(CodeInts(), words))); };
  const auto odd = [](hn::Vec<CodeWords> words) HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(CodeInts(), words)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

// With x of 8 bits and scales that are integers of 8 bits times a number of the block of 256. Products are multiplied
// with the integer before they are summed, so that 32 columns, which have one scale of x, make one sum.
struct ScaledSums : ByteSums {
  const float* x_scales;           // of each 32 columns of the block
  const float* x_sums;             // and the sums of x
  const std::int16_t* x_integers;  // the sums of x as integers, of each sixteen
  hn::Vec<CodeWords> factors[2];   // 256 times eight each
  hn::Vec<CodeInts> twice[4];      // each of them twice

  HWY_INLINE ScaledSums() : x_scales(nullptr), x_sums(nullptr), x_integers(nullptr) {}

  // From the b-th 256 columns on.
  HWY_INLINE void begin_block(const KernelInput& in, std::size_t b) {
    x = in.bytes() + 256 * b;
    x_scales = in.block_scales() + 8 * b;
    x_sums = in.block_sums() + 8 * b;
    x_integers = in.integer_sums() + 16 * b;
    block_[0] = block_[1] = hn::Zero(CodeSums());
  }

  // Sixteen factors of each row. What follows takes so many of them.
  HWY_INLINE void take_factors(Codes bytes) {
    const auto zero = hn::Zero(CodeTag());
    const auto low = hn::BitCast(CodeWords(), hn::InterleaveLower(CodeTag(), zero, bytes));
    const auto high = hn::BitCast(CodeWords(), hn::InterleaveUpper(CodeTag(), zero, bytes));
    factors[0] = low;
    factors[1] = high;
    twice[0] = hn::BitCast(CodeInts(), hn::InterleaveLower(CodeWords(), low, low));
    twice[1] = hn::BitCast(CodeInts(), hn::InterleaveUpper(CodeWords(), low, low));
    twice[2] = hn::BitCast(CodeInts(), hn::InterleaveLower(CodeWords(), high, high));
    twice[3] = hn::BitCast(CodeInts(), hn::InterleaveUpper(CodeWords(), high, high));
  }
  // 32 codes of the kAt-th factor, each at most 64.
  template <std::size_t kAt>
  HWY_INLINE void multiply32(Codes first, Codes second) {
    add32<kAt>(hn::Add(pairs(first, 2 * kAt), pairs(second, 2 * kAt + 1)));
  }
  // Sixteen codes of the 2 kAt-th factor and sixteen of the next, each at most 64.
  template <std::size_t kAt>
  HWY_INLINE void multiply_two16(Codes first, Codes second) {
    add_two16<kAt>(pairs(first, 2 * kAt), pairs(second, 2 * kAt + 1));
  }
  // The same for sums of products: of four each for the kAt-th factor, or of two each for two factors.
  template <std::size_t kAt>
  HWY_INLINE void add32(hn::Vec<CodeWords> fours) {
    add(NeighbourProducts(fours, words<kAt>()), kAt);
  }
  template <std::size_t kAt>
  HWY_INLINE void add_two16(hn::Vec<CodeWords> first, hn::Vec<CodeWords> second) {
    add(hn::Add(NeighbourProducts(first, words<2 * kAt>()), NeighbourProducts(second, words<2 * kAt + 1>())), kAt);
  }
  // Sums of x times factors, one for each sixteen columns.
  HWY_INLINE hn::Vec<CodeSums> of_factors() const {
    const auto sum = [&](std::size_t i) HWY_ATTR {
      const auto products = NeighbourProducts(factors[i], hn::LoadDup128(CodeWords(), x_integers + 8 * i));
      return hn::Mul(hn::ConvertTo(CodeSums(), products), hn::LoadDup128(CodeSums(), x_scales + 4 * i));
    };
    return hn::Add(sum(0), sum(1));
  }
  // 256 times the sums of the block, before its number multiplies them.
  HWY_INLINE hn::Vec<CodeSums> block() const { return hn::Add(block_[0], block_[1]); }

 private:
  hn::Vec<CodeSums> block_[2];

  // 256 times the kAt-th factor.
  template <std::size_t kAt>
  HWY_INLINE hn::Vec<CodeWords> words() const {
    return hn::BitCast(CodeWords(), hn::Broadcast<kAt % 4>(twice[kAt / 4]));
  }
  HWY_INLINE void add(hn::Vec<CodeInts> total, std::size_t i) {
    block_[i % 2] = MulAdd(hn::ConvertTo(CodeSums(), total), hn::Set(CodeSums(), x_scales[i]), block_[i % 2]);
  }
};

// Scales [first, first + count) of rows [row, row + 4), of which those from `last` on are row last - 1.
struct ScalesApart {
  std::size_t row;
  std::size_t last;
  std::size_t first;
  std::size_t count;
};

// Four bits of each byte.
HWY_INLINE Codes LowHalf(Codes codes) { return hn::And(codes, hn::Set(CodeTag(), 15)); }
HWY_INLINE Codes HighHalf(Codes codes) { return hn::ShiftRight<4>(codes); }

// The bits of `mask` in each byte shifted by kBits, to the left if that is positive. Requires: they stay within the
// byte.
template <int kBits>
HWY_INLINE Codes MaskedShift(Codes codes, int mask) {
  const hn::Repartition<std::uint16_t, CodeTag> words;
  const auto bits = hn::And(codes, hn::Set(CodeTag(), static_cast<std::uint8_t>(mask)));
  if constexpr (kBits == 0) return bits;
  if constexpr (kBits > 0) return hn::BitCast(CodeTag(), hn::ShiftLeft<kBits>(hn::BitCast(words, bits)));
  if constexpr (kBits < 0) return hn::BitCast(CodeTag(), hn::ShiftRight<-kBits>(hn::BitCast(words, bits)));
}

// 0xff in byte i of sixteen where bit i of two bytes is 1: bytes kFirst and kSecond of the sixteen of a row.
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

// Multiplies rows of blocks whose Type has:
//   Sums              how it takes x
//   kElements, kBytes of a block
//   kScaled           how many codes share a scale; with x of 8 bits 16 or 32
//   kHasMins          whether something is added to codes times scale
//   kOffset           what is taken off each code; multiply() does not do that
//   factors()         gives a sink the factors of some blocks of four rows
//   multiply()        adds the products of a block
//   kScalesApart      only where scales are those of the matrix, besides its codes
template <class Type>
void MultiplyBlocks(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  using Sums = typename Type::Sums;
  static_assert(kBlock % Type::kElements == 0 && (!Sums::kBytes || KernelInput::kByteBlock % Type::kScaled == 0));
  constexpr std::size_t kScales = Type::kElements / Type::kScaled;
  const std::size_t row_bytes = matrix.columns / Type::kElements * Type::kBytes;
  alignas(64) float scales[kBlock / Type::kScaled][4];  // not in the sink, which is then in registers
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    NextRows next(four.rows[0]);
    hn::Vec<CodeSums> total[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) total[v] = hn::Zero(CodeSums());
    FactorSink<Type> factors(scales);
    std::size_t start = 0;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t columns = std::min(kBlock, matrix.columns - b * kBlock);
      const std::size_t blocks = columns / Type::kElements;
      factors.begin(in, b);
      if constexpr (requires { Type::kScalesApart; }) {
        Type::factors(matrix, {r, last, b * (kBlock / Type::kScaled), blocks * kScales}, factors);
      } else {
        Type::factors(four.rows, start, blocks, factors);
      }
      Sums sums[kVectors];
      for (Sums& one : sums) one.begin(in, b);
      for (std::size_t i = 0; i < blocks; ++i) {
        next.ask(4 * (start + Type::kBytes));
        HWY_UNROLL(4)
        for (std::size_t v = 0; v < kVectors; ++v) {
          Sums& one = sums[v];
          one.rows = four.rows + v * kRowsOfVector;
          one.start = start;
          one.scales = scales + i * kScales;
          one.vector = v;
          Type::multiply(one);
          one.advance(Type::kElements);
        }
        start += Type::kBytes;
      }
      for (std::size_t v = 0; v < kVectors; ++v) {
        if constexpr (Sums::kBytes) {
          total[v] = hn::Add(total[v], sums[v].sum());
        } else {
          total[v] = MulAdd(sums[v].sum(), hn::Set(CodeSums(), in.scale(b)), total[v]);
        }
      }
    }
    alignas(64) float lanes[16];
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(total[v], CodeSums(), lanes + 4 * kRowsOfVector * v);
    const auto row = [&](std::size_t i) HWY_ATTR { return hn::Load(FourFloats(), lanes + 4 * i); };
    FourSums result = FourSums::of(FourFloats(), row(0), row(1), row(2), row(3));
    if constexpr (Type::kHasMins) result.add(FourSums(factors.total()));
    if constexpr (Type::kOffset != 0) result.add_product(-Type::kOffset, FourSums(factors.total()));
    result.store(y + r, last - r);
  }
}

// The same with ScaledSums, for blocks of 256 whose Type has:
//   kBytes            of a block
//   kNumber           the offset of the float16 number that multiplies its scales
//   kUnit             a power of two that multiplies them, too
//   kOffset           subtracted from each code, if each sixteen columns have a factor; multiply() does not do that
//   kHasMins          whether minimums are subtracted: mins() gives them times sums of x, kMin is the offset of the
//                     float16 number that multiplies them
//   factors()         sixteen bytes of each row
//   multiply()        adds the products of a block
template <class Type>
void MultiplySuperBlocks(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in,
                         float* y) {
  constexpr std::size_t kAtOnce = 4;  // blocks whose numbers are made float32 together
  const std::size_t blocks = matrix.columns / 256;
  const std::size_t row_bytes = blocks * Type::kBytes;
  alignas(64) float numbers[kAtOnce][4];
  alignas(64) float mins[kAtOnce][4];
  const auto put = [](auto& to) HWY_ATTR {
    return [&to](auto floats, std::size_t i, auto values) HWY_ATTR { hn::Store(values, floats, to[i]); };
  };
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    NextRows next(four.rows[0]);
    hn::Vec<CodeSums> total[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) total[v] = hn::Zero(CodeSums());
    std::size_t start = 0;
    for (std::size_t b = 0; b < blocks; ++b, start += Type::kBytes) {
      if (b % kAtOnce == 0) {
        ForHalves(four.rows, start + Type::kNumber, Type::kBytes, std::min(kAtOnce, blocks - b), put(numbers));
        if constexpr (Type::kHasMins)
          ForHalves(four.rows, start + Type::kMin, Type::kBytes, std::min(kAtOnce, blocks - b), put(mins));
      }
      next.ask(4 * (start + Type::kBytes));
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        ScaledSums sums;
        sums.rows = four.rows + v * kRowsOfVector;
        sums.start = start;
        sums.vector = v;
        sums.begin_block(in, b);
        sums.take_factors(Type::factors(sums));
        Type::multiply(sums);
        auto block = sums.block();
        if constexpr (Type::kOffset != 0)
          block = hn::NegMulAdd(hn::Set(CodeSums(), Type::kOffset), sums.of_factors(), block);
        sums.scales = numbers + b % kAtOnce;
        total[v] = MulAdd(sums.scale(0), block, total[v]);
        if constexpr (Type::kHasMins) {
          sums.scales = mins + b % kAtOnce;
          total[v] = hn::NegMulAdd(sums.scale(0), Type::mins(sums), total[v]);
        }
      }
    }
    alignas(64) float lanes[16];
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::Store(hn::Mul(total[v], hn::Set(CodeSums(), Type::kUnit / 256)), CodeSums(), lanes + 4 * kRowsOfVector * v);
    const auto row = [&](std::size_t i) HWY_ATTR { return hn::Load(FourFloats(), lanes + 4 * i); };
    FourSums::of(FourFloats(), row(0), row(1), row(2), row(3)).store(y + r, last - r);
  }
}

template <class Type>
constexpr auto MultiplyBlocksOf() {
  if constexpr (requires { Type::kNumber; }) {
    return &MultiplySuperBlocks<Type>;
  } else {
    return &MultiplyBlocks<Type>;
  }
}

template <class Type>
constexpr TypeKernels kOfBlocks = {
    .decode = decode_blocks,
    .multiply_integers = MultiplyBlocksOf<Type>(),
    .integers = Type::Sums::kBytes ? KernelInput::Form::bytes : KernelInput::Form::words};

#else

template <class Type>
constexpr TypeKernels kOfBlocks = {.decode = decode_blocks};

#endif

template <class Type>
const TypeKernels& BlockKernels() {
  static constexpr TypeKernels kKernels = kOfBlocks<Type>;
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
