// Decodes rows of stored numbers to float32, and multiplies them by few tokens. A loader reads the elements of one
// stored type: loader(row, i) returns a vector of float32 numbers from element i of a row on; count_bytes(n) is the
// size of n elements.
#if defined(POISE_KERNELS_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_ROWS
#undef POISE_KERNELS_ROWS
#else
#define POISE_KERNELS_ROWS
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/product_kernels.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

using Bytes = const std::uint8_t*;
using hn::LoadU;
using hn::MulAdd;

// Returns the last `count` elements of a row, which begin with element i. The vector is padded with the number that
// zero bytes stand for.
template <typename Loader>
HWY_INLINE auto LoadTail(const Loader& loader, Bytes row, std::size_t i, std::size_t count) {
  HWY_ALIGN std::uint8_t buffer[4 * kMaxLanes] = {};
  std::memcpy(buffer, row + Loader::count_bytes(i), Loader::count_bytes(count));
  return loader(buffer, 0);
}

template <typename Loader>
HWY_INLINE void DecodeElements(const Loader& loader, Bytes row, std::size_t begin, std::size_t count, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(loader(row, begin + i), Floats(), out + i);
  if (i == count) return;
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(LoadTail(loader, row, begin + i, count - i), Floats(), buffer);
  std::memcpy(out + i, buffer, sizeof(float) * (count - i));
}

template <typename Loader>
void DecodeRows(const StoredRows& matrix, const DecodedPart& part) {
  const Loader loader(matrix);
  const std::size_t row_bytes = Loader::count_bytes(matrix.columns);
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    DecodeElements(loader, row, part.begin, part.count, part.out + (r - part.first) * part.stride);
  }
}

// Kernels first sum products of this number of columns, then add these sums, because long sums lose precision in
// float32.
constexpr std::size_t kOneBlock = 512;

// Computes products of kRows rows with elements [begin, end) of some tokens. The product of row r and token t goes to
// sums[t][at + r]. For every four columns, prefetches `ahead` elements of the next rows.
template <std::size_t kRows, std::size_t kTokens, typename Loader>
HWY_INLINE void SumProducts(const Loader& loader, const Bytes* rows, std::size_t begin, std::size_t end, const float* x,
                            std::size_t stride, NextRows& next, std::size_t ahead, hn::Vec<Floats> (&sums)[kTokens][4],
                            std::size_t at) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sum[kTokens][kRows];
  HWY_UNROLL(4)
  for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) sum[t][r] = hn::Zero(Floats());
  }
  const auto add = [&](const auto& weight_of, const auto& x_of) HWY_ATTR {
    hn::Vec<Floats> weight[kRows];
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) weight[r] = weight_of(rows[r]);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto in = x_of(x + t * stride);
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < kRows; ++r) sum[t][r] = MulAdd(weight[r], in, sum[t][r]);
    }
  };
  const std::size_t step = Loader::count_bytes(lanes * ahead / 4);
  std::size_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    next.prefetch_more(step);
    add([&](Bytes row) HWY_ATTR { return loader(row, i); }, [&](const float* in) HWY_ATTR { return Load(in + i); });
  }
  if (const std::size_t rest = end - i; rest > 0) {
    add([&](Bytes row) HWY_ATTR { return LoadTail(loader, row, i, rest); },
        [&](const float* in) HWY_ATTR { return LoadTail(in + i, rest); });
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t r = 0; r < kRows; ++r) sums[t][at + r] = sum[t][r];
  }
}

// Multiplies few tokens, directly from the stored bytes. With more than two tokens, multiplies each block of x by up to
// kRowsOfFew rows while the block is in the first-level cache. If fewer than four rows are left, repeats the last one.
template <typename Loader>
void MultiplyFloats(const StoredRows& matrix, std::size_t first, std::size_t last, const FewFloats& in, float* y,
                    std::size_t stride) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::count_bytes(columns);
  const std::size_t together = choose_rows_for_few_tokens(in.tokens);
  for (std::size_t r = first; r < last; r += together) {
    const std::size_t count = std::min(together, last - r);
    const Bytes start = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    NextRows next = together == 4 ? NextRows(start) : NextRows(start, together * row_bytes);
    FourSums totals[kRowsOfFew / 4][KernelInput::kFewTokens];
    for (std::size_t begin = 0; begin < columns; begin += kOneBlock) {
      const std::size_t end = std::min(columns, begin + kOneBlock);
      for (std::size_t q = 0; q < count; q += 4) {
        Bytes rows[4];
        for (std::size_t i = 0; i < 4; ++i) rows[i] = start + std::min(q + i, count - 1) * row_bytes;
        VisitTokens<kFewTogether>(in.tokens, [&](auto some, std::size_t t) HWY_ATTR {
          constexpr std::size_t kTokens = some();
          constexpr std::size_t kRows = ChooseRowsTogether(kTokens);
          hn::Vec<Floats> sums[kTokens][4];
          for (std::size_t i = 0; i < 4; i += kRows) {
            // Each call prefetches a share of the next rows, in proportion to the products that it computes.
            SumProducts<kRows>(loader, rows + i, begin, end, in.x + t * columns, columns, next,
                               4 * kRows * kTokens / in.tokens, sums, i);
          }
          for (std::size_t k = 0; k < kTokens; ++k) totals[q / 4][t + k].add(FourSums::sum_lanes(Floats(), sums[k]));
        });
      }
    }
    for (std::size_t q = 0; q < count; q += 4) {
      for (std::size_t t = 0; t < in.tokens; ++t) totals[q / 4][t].store(y + t * stride + (r - first) + q, count - q);
    }
  }
}

// Adds x[r] times row r to the sums of columns, four rows at a time.
template <typename Loader>
void AddRows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* sums) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::count_bytes(columns);
  const std::size_t lanes = hn::Lanes(Floats());
  const auto add = [&](auto together, std::size_t r) HWY_ATTR {
    constexpr std::size_t kRows = together();
    const Bytes rows = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    NextRows next(rows);
    std::size_t i = 0;
    for (; i + lanes <= columns; i += lanes) {
      next.prefetch(Loader::count_bytes(kRows * (i + lanes)));
      auto sum = Load(sums + i);
      for (std::size_t k = 0; k < kRows; ++k)
        sum = MulAdd(hn::Set(Floats(), x[r + k]), loader(rows + k * row_bytes, i), sum);
      hn::StoreU(sum, Floats(), sums + i);
    }
    if (i == columns) return;
    HWY_ALIGN float last_sums[kMaxLanes];
    auto sum = LoadTail(sums + i, columns - i);
    for (std::size_t k = 0; k < kRows; ++k)
      sum = MulAdd(hn::Set(Floats(), x[r + k]), LoadTail(loader, rows + k * row_bytes, i, columns - i), sum);
    hn::Store(sum, Floats(), last_sums);
    std::memcpy(sums + i, last_sums, sizeof(float) * (columns - i));
  };
  std::size_t r = first;
  for (; r + 4 <= last; r += 4) add(std::integral_constant<std::size_t, 4>(), r);
  for (; r < last; ++r) add(std::integral_constant<std::size_t, 1>(), r);
}

HWY_INLINE unsigned GetNibble(Bytes data, std::size_t i) { return i % 2 == 0 ? data[i / 2] & 15U : data[i / 2] >> 4U; }

// Unpacks nibbles of a row, beginning with element i, to a vector with one nibble a byte. Requires: i is even, or
// vectors have one lane.
HWY_INLINE auto LoadNibbles(Bytes row, std::size_t i) {
  const hn::Rebind<std::uint8_t, Floats> codes;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(codes, static_cast<std::uint8_t>(GetNibble(row, i)));
#else
  const hn::Half<decltype(codes)> pairs;
  const hn::Repartition<std::uint16_t, decltype(codes)> words;  // bytes have no shifts
  const auto low_half = hn::Set(codes, 15);
  const auto both = hn::ZeroExtendVector(codes, LoadU(pairs, row + i / 2));
  const auto low = hn::And(both, low_half);
  const auto high = hn::And(hn::BitCast(codes, hn::ShiftRight<4>(hn::BitCast(words, both))), low_half);
  return hn::InterleaveLower(codes, low, high);
#endif
}

// Divides rows into groups of matrix.group_size columns. Classes for the `Factors` of DecodeGroups() derive from it.
struct ColumnGroups {
  explicit ColumnGroups(const StoredRows& rows) : matrix(rows) {}
  std::size_t find_group(std::size_t column) const { return column / matrix.group_size; }
  std::size_t find_group_end(std::size_t group) const { return (group + 1) * matrix.group_size; }

  const StoredRows& matrix;
};

// Loads unsigned codes, one a byte.
struct Codes8 {
  explicit Codes8(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i)));
  }
};

// Loads unsigned codes, two a byte.
struct Codes4 {
  explicit Codes4(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return count / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadNibbles(row, i)));
  }
};

// Decodes rows whose groups of columns have scales. `Numbers` is a loader. `Factors` returns the first group of a row
// (find_first_group()), the group of a column, counted from there (find_group()), the column at which a group ends
// (find_group_end()), and vectors with the scale (load_scale()) and the zero point (load_zero()) of a group. Requires:
// groups and parts are whole vectors of columns.
template <class Numbers, class Factors>
void DecodeGroups(const StoredRows& matrix, const DecodedPart& part) {
  const Numbers numbers(matrix);
  const Factors factors(matrix);
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * Numbers::count_bytes(matrix.columns);
    const std::size_t first = factors.find_first_group(r);
    float* const out = part.out + (r - part.first) * part.stride;
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t g = factors.find_group(part.begin + i);
      const std::size_t end = std::min(part.count, factors.find_group_end(g) - part.begin);
      const auto scale = factors.load_scale(first + g);
      const auto zero = factors.load_zero(first + g);
      for (; i < end; i += lanes)
        hn::StoreU(hn::Mul(hn::Sub(numbers(row, part.begin + i), zero), scale), Floats(), out + i);
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
