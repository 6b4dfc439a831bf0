// Rows of stored numbers as float32, and their products with one token; each stored type brings a loader.
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

// Each loader makes a vector of float32 from a row's elements, beginning at an index; `bytes(n)` is the size of n
// elements.

// The last `count` elements of a row, padded with what zero bytes decode to.
template <typename Loader>
HWY_INLINE auto LoadTail(const Loader& loader, Bytes row, std::size_t i, std::size_t count) {
  HWY_ALIGN std::uint8_t buffer[4 * kMaxLanes] = {};
  std::memcpy(buffer, row + Loader::bytes(i), Loader::bytes(count));
  return loader(buffer, 0);
}

// Elements [begin, begin + count) of a row.
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
  const std::size_t row_bytes = Loader::bytes(matrix.columns);
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    DecodeElements(loader, row, part.begin, part.count, part.out + (r - part.first) * part.stride);
  }
}

// Sums of products are summed within blocks, then the blocks are added: long sums lose precision in float32.
constexpr std::size_t kOneBlock = 512;

// Sums of four rows.
struct FourRows {
  hn::Vec<Floats> a, b, c, d;

  HWY_INLINE FourRows() : a(hn::Zero(Floats())), b(a), c(a), d(a) {}

  template <typename V>
  HWY_INLINE void add(V w0, V w1, V w2, V w3, V x) {
    a = MulAdd(w0, x, a);
    b = MulAdd(w1, x, b);
    c = MulAdd(w2, x, c);
    d = MulAdd(w3, x, d);
  }
  HWY_INLINE FourSums sums() const { return FourSums::of(Floats(), a, b, c, d); }
};

// One token, directly from the stored bytes. If there are fewer than four rows, the last is repeated.
template <typename Loader>
void MultiplyFloats(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::bytes(columns);
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t r = first; r < last; r += 4) {
    const auto row = [&](std::size_t i) {
      return reinterpret_cast<Bytes>(matrix.data) + std::min(r + i, last - 1) * row_bytes;
    };
    const Bytes row0 = row(0);
    const Bytes row1 = row(1);
    const Bytes row2 = row(2);
    const Bytes row3 = row(3);
    NextRows next(row0);
    FourSums total;
    for (std::size_t i = 0; i < columns;) {
      const std::size_t end = std::min(columns, i + kOneBlock);
      FourRows block;
      for (; i + lanes <= end; i += lanes) {
        next.ask(Loader::bytes(4 * (i + lanes)));
        block.add(loader(row0, i), loader(row1, i), loader(row2, i), loader(row3, i), Load(x + i));
      }
      if (const std::size_t rest = end - i; rest > 0) {
        block.add(LoadTail(loader, row0, i, rest), LoadTail(loader, row1, i, rest), LoadTail(loader, row2, i, rest),
                  LoadTail(loader, row3, i, rest), LoadTail(x + i, rest));
        i = end;
      }
      total.add(block.sums());
    }
    total.store(y + r, last - r);
  }
}

// Adds rows times their x to sums of columns, four rows at a time.
template <typename Loader>
void AddRows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* sums) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::bytes(columns);
  const std::size_t lanes = hn::Lanes(Floats());
  const auto add = [&](auto together, std::size_t r) HWY_ATTR {
    constexpr std::size_t kRows = together();
    const Bytes rows = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    NextRows next(rows);
    std::size_t i = 0;
    for (; i + lanes <= columns; i += lanes) {
      next.ask(Loader::bytes(kRows * (i + lanes)));
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

// Element i of packed nibbles.
HWY_INLINE unsigned Nibble(Bytes data, std::size_t i) { return i % 2 == 0 ? data[i / 2] & 15U : data[i / 2] >> 4U; }

// Packed nibbles from element i on, which is even unless vectors have one lane.
HWY_INLINE auto LoadNibbles(Bytes row, std::size_t i) {
  const hn::Rebind<std::uint8_t, Floats> codes;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(codes, static_cast<std::uint8_t>(Nibble(row, i)));
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

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
