// Multiplies codes of the rows that share a vector by the integer x of several tokens. Types of blocks use WordSums,
// ByteSums or ScaledSums. For codes that share a scale, these sum the products exactly, as integers, then multiply the
// sum by the scale, and add the result in float32. The products of a row's codes are added in the same order on every
// x86 processor and for any number of tokens.
#if defined(POISE_KERNELS_ROW_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_ROW_SUMS
#undef POISE_KERNELS_ROW_SUMS
#else
#define POISE_KERNELS_ROW_SUMS
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/blocks/block_rows-inl.hpp"
#include "kernels/product.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Names the form of x. If kBytes, x has integers of 7 bits and a sign, and comments call it x of 8 bits. Otherwise x
// has integers of 15 bits and a sign, and comments call it x of 15 bits.
template <bool kBytes>
using InputOf = std::conditional_t<kBytes, KernelInput::Bytes, KernelInput::Words>;

// Accepts the scales and minimums of groups of columns for four rows, and stores the scales for add_products(). With
// one token and x of 8 bits, first multiplies the scales by those of x. Adds up the products of minimums (or of scales,
// if codes have an offset) and sums of x. A vector has the factors (scales or minimums) of one group or of two.
template <class Type, std::size_t kTokens>
struct FactorSink {
  using EightFloats = hn::CappedTag<float, 8>;
  static constexpr bool kBytes = Type::template Sums<kTokens>::kBytes;
  float (*scales)[4];
  const float* x_scales;  // the scales of one token
  const float* x_sums[kTokens];
  hn::Vec<FourFloats> sum[kTokens];
  hn::Vec<EightFloats> sums[kTokens][2];

  explicit HWY_INLINE FactorSink(float (*to)[4]) : scales(to), x_scales(nullptr) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      x_sums[t] = nullptr;
      sum[t] = hn::Zero(FourFloats());
      sums[t][0] = sums[t][1] = hn::Zero(EightFloats());
    }
  }

  // Moves to block b of kBlock columns, and to the tokens from `first` on.
  HWY_INLINE void begin(const InputOf<kBytes>& in, std::size_t first, std::size_t b) {
    if constexpr (kBytes) {
      constexpr std::size_t kOfBlock = 4 * (kBlock / Type::kScaled);
      x_scales = in.get_scales(first) + b * kOfBlock;
      for (std::size_t t = 0; t < kTokens; ++t) x_sums[t] = in.get_sums(first + t) + b * kOfBlock;
    }
  }
  // Accepts the scales of the i-th group (in a vector of eight, also those of the next). kWhich chooses one of two
  // independent sums.
  template <int kWhich, class D>
  HWY_INLINE void accept_scale(D floats, std::size_t i, hn::Vec<D> factors) {
    if constexpr (Type::kOffset != 0) weigh<kWhich>(floats, i, factors);
    if constexpr (kBytes && kTokens == 1) factors = hn::Mul(factors, LoadU(floats, x_scales + 4 * i));
    hn::Store(factors, floats, scales[i]);
  }
  template <int kWhich, class D>
  HWY_INLINE void accept_min(D floats, std::size_t i, hn::Vec<D> factors) {
    weigh<kWhich>(floats, i, factors);
  }
  // Accepts the scales of `count` groups that the caller has written to `scales`.
  HWY_INLINE void accept_written_scales(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) accept_scale<0>(FourFloats(), i, hn::Load(FourFloats(), scales[i]));
  }
  HWY_INLINE hn::Vec<FourFloats> add_up(std::size_t t) const {
    return hn::Add(sum[t], FourSums::add_blocks(EightFloats(), hn::Add(sums[t][0], sums[t][1])));
  }

 private:
  template <int kWhich, class D>
  HWY_INLINE void weigh(D floats, std::size_t i, hn::Vec<D> factors) {
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto x = LoadU(floats, x_sums[t] + 4 * i);
      if constexpr (hn::MaxLanes(D()) == 4) {
        sum[t] = MulAdd(factors, x, sum[t]);
      } else {
        sums[t][kWhich] = MulAdd(factors, x, sums[t][kWhich]);
      }
    }
  }
};

// Holds the scales of a block, and the sums of some tokens for the rows of one vector.
template <std::size_t kTokens>
struct RowSums {
  const Bytes* rows;
  std::size_t start;         // where the block begins in its row
  const float (*scales)[4];  // the scales of the block
  std::size_t vector;        // the index of the vector among those of four rows

  HWY_INLINE RowSums() : rows(nullptr), start(0), scales(nullptr), vector(0) {
    for (std::size_t t = 0; t < kTokens; ++t) sum_[t] = before_[t] = hn::Zero(CodeSums());
  }

  HWY_INLINE Codes load(std::size_t at) const { return LoadRows(CodeTag(), rows, start + at); }

  // Adds exact sums, times their scale, to the float32 sums of token t.
  HWY_INLINE void finish(std::size_t t, hn::Vec<CodeInts> total, hn::Vec<CodeSums> scale) {
    const auto next = MulAdd(hn::ConvertTo(CodeSums(), total), scale, before_[t]);
    before_[t] = sum_[t];
    sum_[t] = next;
  }
  HWY_INLINE hn::Vec<CodeSums> add_up(std::size_t t) const { return hn::Add(sum_[t], before_[t]); }

  // Returns the i-th scale of each row.
  HWY_INLINE hn::Vec<CodeSums> load_scale(std::size_t i) const {
    const float* const of_rows = scales[i];
    if constexpr (kRowsOfVector == 1) {
      return hn::Set(CodeSums(), of_rows[vector]);
    } else {
      alignas(64) static constexpr std::uint8_t kPlaces[64] = {
          0, 1, 2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  4,  5,  6,  7, 4,  5,
          6, 7, 4,  5,  6,  7,  4,  5,  6,  7,  8,  9,  10, 11, 8,  9,  10, 11, 8,  9, 10, 11,
          8, 9, 10, 11, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15};
      const auto places = hn::Load(CodeTag(), kPlaces + 16 * kRowsOfVector * vector);
      return hn::BitCast(CodeSums(),
                         hn::TableLookupBytes(hn::BitCast(CodeTag(), hn::LoadDup128(CodeSums(), of_rows)), places));
    }
  }

 private:
  // Two sums alternate, so that additions overlap.
  hn::Vec<CodeSums> sum_[kTokens];
  hn::Vec<CodeSums> before_[kTokens];
};

// Computes sums with x of 15 bits.
template <std::size_t kTokens>
struct WordSums : RowSums<kTokens> {
  static constexpr bool kBytes = false;
  const std::int16_t* even;  // x of the block's even columns
  const std::int16_t* odd;   // x of the odd columns
  std::size_t x_stride;      // the distance to the x of the next token

  HWY_INLINE WordSums() : even(nullptr), odd(nullptr), x_stride(0) {}

  // Moves to x of block b of kBlock columns; advance() then moves on by some columns.
  HWY_INLINE void begin(const KernelInput::Words& in, std::size_t first, std::size_t b) {
    even = in.get_integers(first, b);
    odd = even + in.count_integers(b) / 2;
    x_stride = in.blocks() * kBlock;
  }
  HWY_INLINE void advance(std::size_t columns) {
    even += columns / 2;
    odd += columns / 2;
  }

  struct Sum {
    ExactSum<false, CodeWords> of[kTokens];

    HWY_INLINE Sum() {}
    HWY_INLINE const Sum& total() const { return *this; }
  };

  // Adds the products of sixteen signed codes with x of columns [16 i, 16 i + 16).
  HWY_INLINE void add(Sum& scaled, Codes codes, std::size_t i) const {
    const auto words = hn::BitCast(CodeWords(), codes);
    const auto even_codes = EightBits<true>::extract_plane<0>(words);
    const auto odd_codes = EightBits<true>::extract_plane<1>(words);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) {
      scaled.of[t].add(even_codes, hn::LoadDup128(CodeWords(), even + t * x_stride + 8 * i));
      scaled.of[t].add(odd_codes, hn::LoadDup128(CodeWords(), odd + t * x_stride + 8 * i));
    }
  }
  HWY_INLINE void finish(const Sum& total, std::size_t i) {
    const auto scale = this->load_scale(i);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) RowSums<kTokens>::finish(t, total.of[t].total(), scale);
  }
};

// Computes sums with x of 8 bits, where kScaled columns share a scale.
template <std::size_t kTokens, std::size_t kScaled>
struct ByteSums : RowSums<kTokens> {
  static constexpr bool kBytes = true;
  const std::int8_t* x;  // the x of the block's columns
  std::size_t x_stride;  // the distance to the x of the next token
  const float* x_scales;
  std::size_t x_scale_stride;

  HWY_INLINE ByteSums() : x(nullptr), x_stride(0), x_scales(nullptr), x_scale_stride(0) {}

  HWY_INLINE void begin(const KernelInput::Bytes& in, std::size_t first, std::size_t b) {
    x = in.get_integers(first) + b * kBlock;
    x_stride = in.columns;
    x_scales = in.get_scales(first) + b * (4 * (kBlock / kScaled));
    x_scale_stride = in.sums_stride;
  }
  HWY_INLINE void advance(std::size_t columns) {
    x += columns;
    x_scales += 4 * (columns / kScaled);
  }

  // Returns x of columns [16 i, 16 i + 16).
  HWY_INLINE hn::Vec<CodeSigned> load_x(std::size_t t, std::size_t i) const {
    return hn::LoadDup128(CodeSigned(), x + t * x_stride + 16 * i);
  }
  // Multiplies sixteen unsigned codes by x of columns [16 i, 16 i + 16), and adds the products of neighbouring columns.
  HWY_INLINE hn::Vec<CodeWords> multiply_pairs(std::size_t t, Codes codes, std::size_t i) const {
    return MultiplyAddPairs(codes, load_x(t, i));
  }

  // Adds, for each token, the exact sums total(t), times the i-th scale, to the float32 sums.
  template <class Total>
  HWY_INLINE void finish_each(std::size_t i, const Total& total) {
    const auto scale = this->load_scale(i);
    if constexpr (kTokens == 1)
      return RowSums<kTokens>::finish(0, total(0), scale);  // FactorSink has multiplied the scales by those of x
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto of_x = hn::Set(CodeSums(), x_scales[t * x_scale_stride + 4 * i]);
      RowSums<kTokens>::finish(t, total(t), hn::Mul(scale, of_x));
    }
  }

  // Adds the products of x and sixteen codes that have the i-th scale. Requires: each code is at most 128.
  HWY_INLINE void multiply16(Codes codes, std::size_t i) {
    finish_each(i, [&](std::size_t t) HWY_ATTR { return SumPairs(multiply_pairs(t, codes, i)); });
  }
  // Adds the products of x and 32 codes that have the i-th scale. Requires: each code is at most 64, so that 16 bits
  // hold sums of four products.
  HWY_INLINE void multiply32(Codes first, Codes second, std::size_t i) {
    finish_each(i, [&](std::size_t t) HWY_ATTR {
      return SumPairs(hn::Add(multiply_pairs(t, first, 2 * i), multiply_pairs(t, second, 2 * i + 1)));
    });
  }
  // Adds the products of x and 32 signed numbers that have the i-th scale. Requires: none is -128.
  HWY_INLINE void multiply_signed32(Codes first, Codes second, std::size_t i) {
    const auto magnitude = [](Codes numbers)
                               HWY_ATTR { return hn::BitCast(CodeTag(), hn::Abs(hn::BitCast(CodeSigned(), numbers))); };
    const Codes codes[2] = {magnitude(first), magnitude(second)};
    const auto pairs_of = [&](std::size_t t, Codes numbers, std::size_t which) HWY_ATTR {
      return MultiplyAddPairs(codes[which], ApplySigns(load_x(t, 2 * i + which), hn::BitCast(CodeSigned(), numbers)));
    };
    finish_each(i, [&](std::size_t t)
                       HWY_ATTR { return hn::Add(SumPairs(pairs_of(t, first, 0)), SumPairs(pairs_of(t, second, 1))); });
  }
};

// Computes sums with x of 8 bits. A scale is a factor (an integer of 8 bits) times a float16 number of the block of 256
// columns. The class multiplies products by factors before it adds them, so that 32 columns, which have one scale of x,
// make one sum.
template <std::size_t kTokens>
struct ScaledSums : ByteSums<kTokens, 32> {
  const float* x_sums;             // for the first token, the sums of x over each 32 columns of the block
  const std::int16_t* x_integers;  // the sums of the integers of x over each 16 columns
  hn::Vec<CodeWords> factors[2];   // 256 * factor, for eight factors each
  hn::Vec<CodeInts> twice[4];      // the same, each factor twice

  HWY_INLINE ScaledSums() : x_sums(nullptr), x_integers(nullptr) {}

  // Moves to block b of 256 columns, and to the tokens from `first` on.
  HWY_INLINE void begin_block(const KernelInput::Bytes& in, std::size_t first, std::size_t b) {
    this->x = in.get_integers(first) + 256 * b;
    this->x_stride = in.columns;
    this->x_scales = in.get_block_scales(first) + 8 * b;  // each once, not four times
    x_sums = in.get_block_sums(first) + 8 * b;
    x_integers = in.get_integer_sums(first) + 16 * b;
    for (auto& sums : block_) sums[0] = sums[1] = hn::Zero(CodeSums());
  }

  // Sets sixteen factors of each row, which the next products use.
  HWY_INLINE void set_factors(Codes bytes) {
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
  // Adds the products of x and 32 codes that have the kAt-th factor. Requires: each code is at most 64.
  template <std::size_t kAt>
  HWY_INLINE void multiply32(Codes first, Codes second) {
    add32<kAt>([&](std::size_t t) HWY_ATTR {
      return hn::Add(this->multiply_pairs(t, first, 2 * kAt), this->multiply_pairs(t, second, 2 * kAt + 1));
    });
  }
  // Adds the products of x and 32 codes: the first sixteen have factor 2 * kAt, the others the next factor. Requires:
  // each code is at most 64.
  template <std::size_t kAt>
  HWY_INLINE void multiply_two16(Codes first, Codes second) {
    add_two16<kAt>([&](std::size_t t) HWY_ATTR { return this->multiply_pairs(t, first, 2 * kAt); },
                   [&](std::size_t t) HWY_ATTR { return this->multiply_pairs(t, second, 2 * kAt + 1); });
  }
  // add32() multiplies fours(t), the sums of four products for token t, by the kAt-th factor. add_two16() multiplies
  // first(t) and second(t), sums of two products, by factor 2 * kAt and by the next. Both add the results to the sums
  // of the block.
  template <std::size_t kAt, class Sums>
  HWY_INLINE void add32(const Sums& fours) {
    const auto factor = load_factor<kAt>();
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) add(t, MultiplyAddNeighbours(fours(t), factor), kAt);
  }
  template <std::size_t kAt, class First, class Second>
  HWY_INLINE void add_two16(const First& first, const Second& second) {
    const auto factor = load_factor<2 * kAt>();
    const auto next = load_factor<2 * kAt + 1>();
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t)
      add(t, hn::Add(MultiplyAddNeighbours(first(t), factor), MultiplyAddNeighbours(second(t), next)), kAt);
  }
  // Returns 256 times the sums of factor * x over the columns of the block. Every 16 columns share a factor.
  HWY_INLINE hn::Vec<CodeSums> sum_factors(std::size_t t) const {
    const std::size_t columns = this->x_stride;
    const auto products = [&](std::size_t i) HWY_ATTR {
      const auto sums = hn::LoadDup128(CodeWords(), x_integers + t * (columns / 16) + 8 * i);
      return hn::ConvertTo(CodeSums(), MultiplyAddNeighbours(factors[i], sums));
    };
    const float* const steps = this->x_scales + t * (columns / 32);
    return MulAdd(products(0), hn::LoadDup128(CodeSums(), steps),
                  hn::Mul(products(1), hn::LoadDup128(CodeSums(), steps + 4)));
  }
  // Returns the sums of x over each 32 of the i-th 128 columns of the block, repeated for each row.
  HWY_INLINE hn::Vec<CodeSums> load_sums_of_x(std::size_t t, std::size_t i) const {
    return hn::LoadDup128(CodeSums(), x_sums + t * (this->x_stride / 32) + 4 * i);
  }
  // Returns 256 times the sums of the block, not yet multiplied by its float16 number.
  HWY_INLINE hn::Vec<CodeSums> add_up_block(std::size_t t) const { return hn::Add(block_[t][0], block_[t][1]); }

 private:
  hn::Vec<CodeSums> block_[kTokens][2];

  // Returns 256 times the factor with index kAt.
  template <std::size_t kAt>
  HWY_INLINE hn::Vec<CodeWords> load_factor() const {
    return hn::BitCast(CodeWords(), hn::Broadcast<kAt % 4>(twice[kAt / 4]));
  }
  HWY_INLINE void add(std::size_t t, hn::Vec<CodeInts> total, std::size_t i) {
    const auto scale = hn::Set(CodeSums(), this->x_scales[t * (this->x_stride / 32) + i]);
    block_[t][i % 2] = MulAdd(hn::ConvertTo(CodeSums(), total), scale, block_[t][i % 2]);
  }
};

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
