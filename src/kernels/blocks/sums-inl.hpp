// Products of rows of ggml's blocks with one token's x as integers: each type of block says where its codes and its scales are.
//
// Sixteen bytes of a vector belong to one row, so that a vector takes one, two or four rows and a row's sums have the same order on every
// processor. The sums of the codes of one scale are exact; times the scale they are added in float32.
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

#include <hwy/highway.h>

#include "kernels/blocks/block_kernels.hpp"
#include "kernels/halves-inl.hpp"
#include "kernels/integer_sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using CodeTag = hn::CappedTag<std::uint8_t, 64>;
using Codes = hn::Vec<CodeTag>;
using CodeWords = hn::Repartition<std::int16_t, CodeTag>;
using CodeInts = hn::Repartition<std::int32_t, CodeTag>;
using CodeSums = hn::Repartition<float, CodeTag>;
using FourFloats = hn::FixedTag<float, 4>;
using FourWords = hn::FixedTag<std::uint32_t, 4>;

constexpr std::size_t kRowsOfVector = hn::MaxLanes(CodeTag()) / 16;
constexpr std::size_t kVectors = 4 / kRowsOfVector;
constexpr std::size_t kMostScales = kBlock / 16;

// The scales of a block of columns and what is added to codes times scale, of four rows.
struct Factors {
  alignas(64) float scales[kMostScales][4];
  alignas(64) float mins[kMostScales][4];
};

// A float16 number of each row.
HWY_INLINE hn::Vec<FourFloats> FourHalves(const Bytes (&rows)[4], std::size_t at) {
  std::uint64_t halves = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    std::uint16_t half = 0;
    std::memcpy(&half, rows[r] + at, sizeof half);
    halves |= std::uint64_t{half} << (16 * r);
  }
  return HalvesToFloats(FourFloats(), hn::BitCast(hn::Rebind<std::uint16_t, FourFloats>(), hn::Set(hn::FixedTag<std::uint64_t, 1>(), halves)));
}

// The same of `count` blocks that begin at `at`, `stride` bytes apart: out[count][4].
HWY_INLINE void FourHalvesOfBlocks(const Bytes (&rows)[4], std::size_t at, std::size_t stride, std::size_t count, float (*out)[4]) {
  for (std::size_t i = 0; i < count; ++i, at += stride) hn::Store(FourHalves(rows, at), FourFloats(), out[i]);
}

// Sixteen bytes of each row, turned: word r of the i-th vector is word i of row r.
struct TurnedWords {
  hn::Vec<FourWords> words[4];

  HWY_INLINE TurnedWords(const Bytes (&rows)[4], std::size_t at) {
    const FourWords tag;
    const hn::Repartition<std::uint64_t, FourWords> pairs;
    const auto load = [&](std::size_t r) HWY_ATTR { return hn::BitCast(tag, LoadU(hn::FixedTag<std::uint8_t, 16>(), rows[r] + at)); };
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

// out[i][r] = factors[r] times the i-th byte of word r, which is a number of 8 bits and a sign at most.
HWY_INLINE void ScaleBytes(hn::Vec<FourWords> bytes, hn::Vec<FourFloats> factors, float (*out)[4]) {
#if HWY_CAP_GE256
  const hn::FixedTag<float, 8> eight;
  const hn::FixedTag<std::uint8_t, 16> all;
  const hn::FixedTag<std::int8_t, 8> half;
  alignas(16) static constexpr std::uint8_t kTurned[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto turned = hn::BitCast(hn::FixedTag<std::int8_t, 16>(), hn::TableLookupBytes(hn::BitCast(all, bytes), hn::Load(all, kTurned)));
  const auto twice = hn::Combine(eight, factors, factors);
  const auto store = [&](auto eight_bytes, float* to)
                         HWY_ATTR { hn::Store(hn::Mul(twice, hn::ConvertTo(eight, hn::PromoteTo(hn::FixedTag<std::int32_t, 8>(), eight_bytes))), eight, to); };
  store(hn::LowerHalf(half, turned), out[0]);
  store(hn::UpperHalf(half, turned), out[2]);
#else
  const hn::RebindToSigned<FourWords> integers;
  const auto signed_bytes = hn::BitCast(integers, bytes);
  const auto store = [&](auto numbers, std::size_t i)
                         HWY_ATTR { hn::Store(hn::Mul(factors, hn::ConvertTo(FourFloats(), hn::ShiftRight<24>(numbers))), FourFloats(), out[i]); };
  store(hn::ShiftLeft<24>(signed_bytes), 0);
  store(hn::ShiftLeft<16>(signed_bytes), 1);
  store(hn::ShiftLeft<8>(signed_bytes), 2);
  store(signed_bytes, 3);
#endif
}

// Four sums of products of factors and the sums of x that they belong to; four of them, so that none waits for the one before.
struct WeightedSums {
  hn::Vec<FourFloats> sums[4];

  HWY_INLINE WeightedSums() : sums{hn::Zero(FourFloats()), hn::Zero(FourFloats()), hn::Zero(FourFloats()), hn::Zero(FourFloats())} {}

  HWY_INLINE void add(const float (*factors)[4], const float* x, std::size_t count) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
      HWY_UNROLL(4)
      for (std::size_t j = 0; j < 4; ++j) sums[j] = MulAdd(hn::Load(FourFloats(), factors[i + j]), hn::Set(FourFloats(), x[i + j]), sums[j]);
    }
    for (; i < count; ++i) sums[0] = MulAdd(hn::Load(FourFloats(), factors[i]), hn::Set(FourFloats(), x[i]), sums[0]);
  }
  HWY_INLINE hn::Vec<FourFloats> total() const { return hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])); }
};

// Sixteen bytes of as many rows as a vector has.
template <class D>
HWY_INLINE hn::Vec<D> LoadRows(D tag, const Bytes* rows, std::size_t at) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return LoadU(tag, rows[0] + at);
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, LoadRows(half, rows + hn::MaxLanes(half) / 16, at), LoadRows(half, rows, at));
  }
}

// The sums of codes that share a scale.
using ScaledSum = ExactSum<false, CodeWords>;

// The same of codes of four bits that are multiplied where they lie, in four parts of 16-bit words. The codes of a low half and those of a high
// half may want different scales.
struct NibbleSums {
  ScaledSum first, second, third, fourth;

  HWY_INLINE NibbleSums() {}

  // What the low halves come to: the third part is 256 times too large.
  HWY_INLINE hn::Vec<CodeInts> low() const { return hn::Add(first.total(), hn::ShiftRight<8>(third.total())); }
  // What the high halves come to: the second part is 16 times too large.
  HWY_INLINE hn::Vec<CodeInts> high() const { return hn::Add(hn::ShiftRight<4>(second.total()), fourth.total()); }
};

// What a block of the rows of one vector is multiplied with.
struct BlockSums {
  const Bytes* rows;
  std::size_t start;         // of the block in a row
  const std::int16_t* even;  // x of the block's even columns
  const std::int16_t* odd;   // and of the odd ones
  const float (*scales)[4];  // of the block
  std::size_t vector;        // which rows these are
  hn::Vec<CodeSums> sum;

  HWY_INLINE BlockSums() : rows(nullptr), start(0), even(nullptr), odd(nullptr), scales(nullptr), vector(0), sum(hn::Zero(CodeSums())) {}

  HWY_INLINE Codes load(std::size_t at) const { return LoadRows(CodeTag(), rows, start + at); }

  // Adds sixteen codes times x of the i-th sixteen columns.
  template <bool kSigned>
  HWY_INLINE void add(ScaledSum& scaled, Codes codes, std::size_t i) const {
    const auto words = hn::BitCast(CodeWords(), codes);
    scaled.add(EightBits<kSigned>::template plane<0>(words), hn::LoadDup128(CodeWords(), even + 8 * i));
    scaled.add(EightBits<kSigned>::template plane<1>(words), hn::LoadDup128(CodeWords(), odd + 8 * i));
  }

  // Adds sixteen codes in the low halves of bytes times x of the i-th sixteen columns, and those in the high halves times the j-th.
  HWY_INLINE void add_nibbles(NibbleSums& nibbles, Codes pairs, std::size_t i, std::size_t j) const {
    const CodeWords words;
    const auto four = hn::BitCast(words, pairs);
    nibbles.first.add(hn::And(four, hn::Set(words, 0x000f)), hn::LoadDup128(words, even + 8 * i));
    nibbles.second.add(hn::And(four, hn::Set(words, 0x00f0)), hn::LoadDup128(words, even + 8 * j));
    nibbles.third.add(hn::And(four, hn::Set(words, 0x0f00)), hn::LoadDup128(words, odd + 8 * i));
    nibbles.fourth.add(hn::BitCast(words, hn::ShiftRight<12>(hn::BitCast(hn::RebindToUnsigned<CodeWords>(), four))), hn::LoadDup128(words, odd + 8 * j));
  }

  // The codes' sums are complete: they want the i-th scale.
  HWY_INLINE void finish(hn::Vec<CodeInts> total, std::size_t i) { sum = MulAdd(hn::ConvertTo(CodeSums(), total), scale(i), sum); }

 private:
  HWY_INLINE hn::Vec<CodeSums> scale(std::size_t i) const {
    if constexpr (kRowsOfVector == 1) {
      return hn::Set(CodeSums(), scales[i][vector]);
    } else {
      alignas(64) static constexpr std::uint8_t kPlaces[64] = {0, 1, 2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  4,  5,  6,  7, 4,  5,
                                                               6, 7, 4,  5,  6,  7,  4,  5,  6,  7,  8,  9,  10, 11, 8,  9,  10, 11, 8,  9, 10, 11,
                                                               8, 9, 10, 11, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15};
      const auto places = hn::Load(CodeTag(), kPlaces + 16 * kRowsOfVector * vector);
      return hn::BitCast(CodeSums(), hn::TableLookupBytes(hn::BitCast(CodeTag(), hn::LoadDup128(CodeSums(), scales[i])), places));
    }
  }
};

// Four bits of each byte.
HWY_INLINE Codes LowHalf(Codes codes) { return hn::And(codes, hn::Set(CodeTag(), 15)); }
HWY_INLINE Codes HighHalf(Codes codes) { return hn::ShiftRight<4>(codes); }

// The bits of `mask` in each byte shifted by kBits, to the left if that is positive. Requires: they stay within the byte.
template <int kBits>
HWY_INLINE Codes MaskedShift(Codes codes, int mask) {
  const hn::Repartition<std::uint16_t, CodeTag> words;
  const auto bits = hn::And(codes, hn::Set(CodeTag(), static_cast<std::uint8_t>(mask)));
  if constexpr (kBits == 0) return bits;
  if constexpr (kBits > 0) return hn::BitCast(CodeTag(), hn::ShiftLeft<kBits>(hn::BitCast(words, bits)));
  if constexpr (kBits < 0) return hn::BitCast(CodeTag(), hn::ShiftRight<-kBits>(hn::BitCast(words, bits)));
}

// Type has: kElements and kBytes of a block; kScaled, how many codes share a scale; kHasMins, whether something is added to codes times scale;
// kOffset, what is taken off codes that multiply() leaves as they are; factors(), which fills in the factors of some blocks of four rows, and
// multiply(), which adds the products of a block.
template <class Type>
void MultiplyBlocks(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  static_assert(kBlock % Type::kElements == 0);
  constexpr std::size_t kScales = Type::kElements / Type::kScaled;
  const std::size_t row_bytes = matrix.columns / Type::kElements * Type::kBytes;
  const std::size_t ahead = BytesAhead(row_bytes);
  Factors factors;
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    hn::Vec<CodeSums> total[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) total[v] = hn::Zero(CodeSums());
    WeightedSums weighted;
    const float* sums_of_x = in.sums();
    std::size_t start = 0;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t columns = std::min(kBlock, matrix.columns - b * kBlock);
      const std::size_t blocks = columns / Type::kElements;
      const std::size_t run = in.integers_of(b) / 2;
      Type::factors(four.rows, start, blocks, factors);
      if constexpr (Type::kHasMins) weighted.add(factors.mins, sums_of_x, blocks * kScales);
      if constexpr (Type::kOffset != 0) weighted.add(factors.scales, sums_of_x, blocks * kScales);
      sums_of_x += blocks * kScales;
      BlockSums sums[kVectors];
      std::size_t asked = start;
      for (std::size_t i = 0; i < blocks; ++i) {
        for (; asked < start + Type::kBytes; asked += 64) {
          PrefetchAhead(four.rows[0] + asked, four.rows[1] + asked, four.rows[2] + asked, four.rows[3] + asked, ahead);
        }
        HWY_UNROLL(4)
        for (std::size_t v = 0; v < kVectors; ++v) {
          BlockSums& one = sums[v];
          one.rows = four.rows + v * kRowsOfVector;
          one.start = start;
          one.even = in.integers(b) + i * (Type::kElements / 2);
          one.odd = one.even + run;
          one.scales = factors.scales + i * kScales;
          one.vector = v;
          Type::multiply(one);
        }
        start += Type::kBytes;
      }
      for (std::size_t v = 0; v < kVectors; ++v) total[v] = MulAdd(sums[v].sum, hn::Set(CodeSums(), in.scale(b)), total[v]);
    }
    alignas(64) float lanes[16];
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(total[v], CodeSums(), lanes + 4 * kRowsOfVector * v);
    const auto row = [&](std::size_t i) HWY_ATTR { return hn::Load(FourFloats(), lanes + 4 * i); };
    FourSums result = FourSums::of(FourFloats(), row(0), row(1), row(2), row(3));
    if constexpr (Type::kHasMins) result.add(FourSums(weighted.total()));
    if constexpr (Type::kOffset != 0) result.add_product(-Type::kOffset, FourSums(weighted.total()));
    result.store(y + r, last - r);
  }
}

template <class Type>
constexpr MultiplyIntegers kOfBlocks = &MultiplyBlocks<Type>;

#else

template <class Type>
constexpr MultiplyIntegers kOfBlocks = nullptr;

#endif

template <class Type>
const TypeKernels& BlockKernels() {
  static constexpr TypeKernels kKernels = {.decode = decode_blocks, .multiply_integers = kOfBlocks<Type>};
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
