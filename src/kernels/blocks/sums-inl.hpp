// Multiplies rows of ggml's blocks by the x of few tokens, as integers. Each type of block has a class, called Type in
// templates, with the places of its codes and scales.
#if defined(POISE_KERNELS_BLOCK_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_BLOCK_SUMS
#undef POISE_KERNELS_BLOCK_SUMS
#else
#define POISE_KERNELS_BLOCK_SUMS
#endif

#include <algorithm>
#include <cstddef>

#include <hwy/highway.h>

#include "kernels/blocks/block_rows-inl.hpp"
#include "kernels/blocks/row_sums-inl.hpp"
#include "kernels/product_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Describes blocks for MultiplyFourRows(). Classes of block types derive from it; x has 8 bits unless they define Sums.
template <std::size_t kBlockElements, std::size_t kBlockBytes, std::size_t kGroup, bool kMins = false, int kTaken = 0>
struct CodeBlock {
  template <std::size_t kTokens>
  using Sums = ByteSums<kTokens, kGroup>;
  static constexpr std::size_t kElements = kBlockElements;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr std::size_t kScaled = kGroup;
  static constexpr std::size_t kScales = kElements / kGroup;
  static constexpr bool kHasMins = kMins;
  static constexpr float kOffset = kTaken;
};

template <class Type>
constexpr std::size_t CountBlockElements() {
  if constexpr (requires { Type::kNumber; }) {
    return 256;
  } else {
    return Type::kElements;
  }
}

template <class Type>
constexpr bool kTakesBytes = Type::template Sums<1>::kBytes;
// Is the form of x that a type multiplies.
template <class Type>
using XOf = InputOf<kTakesBytes<Type>>;

// Refers to rows [row, row + 4). Row last - 1 replaces rows from `last` on.
struct FourRowsOf {
  FourBytes bytes;
  std::size_t row;
  std::size_t last;
};

// Returns the sums of four rows for token t, times a factor. `total` has the sums of all vectors.
template <std::size_t kTokens>
HWY_INLINE FourSums SumFourRows(const hn::Vec<CodeSums> (&total)[kVectors][kTokens], std::size_t t, float factor) {
  alignas(64) float lanes[16];
  for (std::size_t v = 0; v < kVectors; ++v)
    hn::Store(hn::Mul(total[v][t], hn::Set(CodeSums(), factor)), CodeSums(), lanes + 4 * kRowsOfVector * v);
  const auto row = [&](std::size_t i) HWY_ATTR { return hn::Load(FourFloats(), lanes + 4 * i); };
  return FourSums::sum_lanes(FourFloats(), row(0), row(1), row(2), row(3));
}

// Multiplies rows of blocks whose Type has:
//   Sums              the class that sums products with x of some tokens
//   kElements, kBytes of a block
//   kScaled           how many codes share a scale: 16 or 32 with x of 8 bits
//   kHasMins          true if a minimum is added to code * scale
//   kOffset           the number to subtract from each code; add_products() does not do that
//   pass_factors()    passes the scales and minimums of some blocks of four rows to a sink
//   add_products()    adds the products of a block
//   kScalesApart      exists only if the matrix stores scales apart from codes
template <class Type, std::size_t kTokens>
void MultiplyFourRows(const StoredRows& matrix, const FourRowsOf& four_rows, const XOf<Type>& in, std::size_t first,
                      NextRows& next, float* y, std::size_t stride) {
  using Sums = typename Type::template Sums<kTokens>;
  static_assert(kBlock % Type::kElements == 0 && (!Sums::kBytes || KernelInput::kByteBlock % Type::kScaled == 0));
  constexpr std::size_t kScales = Type::kElements / Type::kScaled;
  constexpr std::size_t kScalesOfBlock = kBlock / Type::kScaled;
  alignas(64) float scales[kScalesOfBlock][4];  // outside the sink, so that the sink fits registers
  hn::Vec<CodeSums> total[kVectors][kTokens];
  for (auto& of_vector : total) {
    for (auto& sum : of_vector) sum = hn::Zero(CodeSums());
  }
  FactorSink<Type, kTokens> factors(scales);
  std::size_t start = 0;
  for (std::size_t b = 0; b * kBlock < matrix.columns; ++b) {
    const std::size_t columns = std::min(kBlock, matrix.columns - b * kBlock);
    const std::size_t blocks = columns / Type::kElements;
    factors.begin(in, first, b);
    if constexpr (requires { Type::kScalesApart; }) {
      Type::pass_factors(matrix, {four_rows.row, four_rows.last, b * kScalesOfBlock, blocks * kScales}, factors);
    } else {
      Type::pass_factors(four_rows.bytes.rows, start, blocks, factors);
    }
    // With one token, the vectors take turns, so that their sums overlap. Several tokens have enough independent sums.
    constexpr std::size_t kTogether = kTokens == 1 ? kVectors : 1;
    for (std::size_t from = 0; from < kVectors; from += kTogether) {
      Sums sums[kTogether];
      for (Sums& one : sums) one.begin(in, first, b);
      for (std::size_t i = 0; i < blocks; ++i) {
        next.prefetch(4 * (start + (i + 1) * Type::kBytes));
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < kTogether; ++k) {
          Sums& one = sums[k];
          one.rows = four_rows.bytes.rows + (from + k) * kRowsOfVector;
          one.start = start + i * Type::kBytes;
          one.scales = scales + i * kScales;
          one.vector = from + k;
          Type::add_products(one);
          one.advance(Type::kElements);
        }
      }
      for (std::size_t k = 0; k < kTogether; ++k) {
        for (std::size_t t = 0; t < kTokens; ++t) {
          auto& sum = total[from + k][t];
          if constexpr (Sums::kBytes) {
            sum = hn::Add(sum, sums[k].add_up(t));
          } else {
            sum = MulAdd(sums[k].add_up(t), hn::Set(CodeSums(), in.get_scale(first + t, b)), sum);
          }
        }
      }
    }
    start += blocks * Type::kBytes;
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    FourSums result = SumFourRows(total, t, 1);
    if constexpr (Type::kHasMins) result.add(FourSums(factors.add_up(t)));
    if constexpr (Type::kOffset != 0) result.add_product(-Type::kOffset, FourSums(factors.add_up(t)));
    result.store(y + t * stride, four_rows.last - four_rows.row);
  }
}

// Multiplies rows of blocks of 256 codes with ScaledSums. The Type of the blocks has:
//   kBytes            of a block
//   kNumber           the offset of the float16 number that multiplies the scales of a block
//   kUnit             a power of two that multiplies the scales, too
//   kOffset           the number to subtract from each code, which add_products() does not do. Types with factors for
//                     32 columns have 0.
//   kHasMins          true if minimums are subtracted: sum_mins() returns them times sums of x, kMin is the offset of
//                     the float16 number that multiplies them
//   load_factors()    returns sixteen scales and minimums of each row, as bytes
//   add_products()    adds the products of a block
template <class Type, std::size_t kTokens>
void MultiplyFourSuperRows(const StoredRows& matrix, const FourRowsOf& four_rows, const KernelInput::Bytes& in,
                           std::size_t first, NextRows& next, float* y, std::size_t stride) {
  constexpr std::size_t kAtOnce = 4;  // blocks whose float16 numbers are converted together
  const std::size_t blocks = matrix.columns / 256;
  alignas(64) float numbers[kAtOnce][4];
  alignas(64) float mins[kAtOnce][4];
  const auto make_store = [](auto& to) HWY_ATTR {
    return [&to](auto floats, std::size_t i, auto values) HWY_ATTR { hn::Store(values, floats, to[i]); };
  };
  hn::Vec<CodeSums> total[kVectors][kTokens];
  for (auto& of_vector : total) {
    for (auto& sum : of_vector) sum = hn::Zero(CodeSums());
  }
  std::size_t start = 0;
  for (std::size_t b = 0; b < blocks; ++b, start += Type::kBytes) {
    if (b % kAtOnce == 0) {
      const std::size_t count = std::min(kAtOnce, blocks - b);
      VisitHalves(four_rows.bytes.rows, start + Type::kNumber, Type::kBytes, count, make_store(numbers));
      if constexpr (Type::kHasMins)
        VisitHalves(four_rows.bytes.rows, start + Type::kMin, Type::kBytes, count, make_store(mins));
    }
    next.prefetch(4 * (start + Type::kBytes));
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      ScaledSums<kTokens> sums;
      sums.rows = four_rows.bytes.rows + v * kRowsOfVector;
      sums.start = start;
      sums.vector = v;
      sums.begin_block(in, first, b);
      sums.set_factors(Type::load_factors(sums));
      Type::add_products(sums);
      sums.scales = numbers + b % kAtOnce;
      const auto number = sums.load_scale(0);
      HWY_UNROLL(4)
      for (std::size_t t = 0; t < kTokens; ++t) {
        auto block = sums.add_up_block(t);
        if constexpr (Type::kOffset != 0)
          block = hn::NegMulAdd(hn::Set(CodeSums(), Type::kOffset), sums.sum_factors(t), block);
        total[v][t] = MulAdd(number, block, total[v][t]);
      }
      if constexpr (Type::kHasMins) {
        sums.scales = mins + b % kAtOnce;
        const auto min = sums.load_scale(0);
        HWY_UNROLL(4)
        for (std::size_t t = 0; t < kTokens; ++t)
          total[v][t] = hn::NegMulAdd(min, Type::sum_mins(sums, t), total[v][t]);
      }
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t)
    SumFourRows(total, t, Type::kUnit / 256).store(y + t * stride, four_rows.last - four_rows.row);
}

#if HWY_TARGET <= HWY_AVX2
constexpr std::size_t kBlockTokens = 4;  // multiplied together
#else
constexpr std::size_t kBlockTokens = 1;
#endif

template <class Type>
void MultiplyBlocks(const StoredRows& matrix, std::size_t first, std::size_t last, const XOf<Type>& in, float* y,
                    std::size_t stride) {
  const std::size_t row_bytes = matrix.columns / CountBlockElements<Type>() * Type::kBytes;
  for (std::size_t r = first; r < last; r += 4) {
    const FourRowsOf four_rows = {FourBytes(matrix, row_bytes, r, last), r, last};
    NextRows next(four_rows.bytes.rows[0]);
    VisitTokens<kBlockTokens>(in.tokens, [&](auto count, std::size_t t) HWY_ATTR {
      float* const out = y + t * stride + (r - first);
      if constexpr (requires { Type::kNumber; }) {
        MultiplyFourSuperRows<Type, count()>(matrix, four_rows, in, t, next, out, stride);
      } else {
        MultiplyFourRows<Type, count()>(matrix, four_rows, in, t, next, out, stride);
      }
    });
  }
}

template <class Type>
constexpr TypeKernels make_kernels() {
  TypeKernels kernels = {.decode = decode_blocks};
  if constexpr (kTakesBytes<Type>) {
    kernels.multiply_bytes = &MultiplyBlocks<Type>;
  } else {
    kernels.multiply_words = &MultiplyBlocks<Type>;
  }
  return kernels;
}

template <class Type>
constexpr TypeKernels kOfBlocks = make_kernels<Type>();

#else

template <class Type>
constexpr TypeKernels kOfBlocks = {.decode = decode_blocks};

#endif

// If the target is HWY_SCALAR, the type is declared but not defined.
template <class Type>
const TypeKernels& GetBlockKernels() {
  static constexpr TypeKernels kKernels = kOfBlocks<Type>;
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
