// Products of weights that are integer codes with one x as integers.
#include <algorithm>
#include <memory>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/integer_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/integer_sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

bool TakesIntegers(const StoredRows&) { return false; }
void MultiplyIntegers(const StoredRows&, std::size_t, std::size_t, const KernelInput&, float*) {}

#else

// The last step of rows with one scale: what stands before x is code * scale + offset.
HWY_INLINE FourSums Scaled(const StoredRows& matrix, FourSums sums, const float* sum_of_x) {
  const FourSums::Tag tag;
  return FourSums(MulAdd(sums.lanes, hn::Set(tag, matrix.scale), hn::Set(tag, matrix.offset * sum_of_x[0])));
}

template <bool kVnni, class Unpack>
void MultiplyOne(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
  const std::size_t ahead = BytesAhead(row_bytes);
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    FourSums total;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t begin = b * (2 * kBlock / Unpack::kPlanes);
      const std::size_t bytes = std::min(row_bytes - begin, 2 * kBlock / Unpack::kPlanes);
      FourExactSums<kVnni, Words> sums;
      sums.template add_bytes<Unpack>(four.rows[0] + begin, four.rows[1] + begin, four.rows[2] + begin, four.rows[3] + begin, bytes, ahead, in.integers(b),
                                      in.integers_of(b) / Unpack::kPlanes);
      total.add_product(in.scale(b), sums.sums());
    }
    Scaled(matrix, total, in.sums()).store(y + r, last - r);
  }
}

template <bool kVnni, class Unpack, class D>
void MultiplyOneGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
  const std::size_t ahead = BytesAhead(row_bytes);
  const std::size_t group_words = matrix.group_size / Unpack::kPlanes;
  GroupScales& scales = GroupScales::of_thread();
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    const std::size_t rows = std::min<std::size_t>(4, last - r);
    const FourPlaces places(rows);
    scales.take(matrix, r, rows, in.sums_stride());
    const float* s0 = scales.scales(places.at[0]);
    const float* s1 = scales.scales(places.at[1]);
    const float* s2 = scales.scales(places.at[2]);
    const float* s3 = scales.scales(places.at[3]);
    FourSums total;
    std::size_t g = 0;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t run = in.integers_of(b) / Unpack::kPlanes;
      const std::int16_t* x = in.integers(b);
      const std::size_t words = std::min(row_bytes / 2 - b * (kBlock / Unpack::kPlanes), kBlock / Unpack::kPlanes);
      FourGroupSums<D> block;
      for (std::size_t i = 0; i < words; i += group_words, ++g) {
        const std::size_t at = 2 * (b * (kBlock / Unpack::kPlanes) + i);
        FourExactSums<kVnni, D> group;
        group.template add_bytes<Unpack>(four.rows[0] + at, four.rows[1] + at, four.rows[2] + at, four.rows[3] + at, 2 * group_words, ahead, x + i, run);
        block.add(group, s0 + g, s1 + g, s2 + g, s3 + g);
      }
      total.add_product(in.scale(b), block.sums());
    }
    scales.without_zeros(total, places.at, in.sums()).store(y + r, last - r);
  }
}

// Vectors of words no longer than a group.
template <bool kVnni, class Unpack>
void MultiplyGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  switch (matrix.group_size / Unpack::kPlanes) {
    case 8: return MultiplyOneGrouped<false, Unpack, hn::CappedTag<std::int16_t, 8> >(matrix, first, last, in, y);
    case 16: return MultiplyOneGrouped<false, Unpack, hn::CappedTag<std::int16_t, 16> >(matrix, first, last, in, y);
    default: return MultiplyOneGrouped<kVnni, Unpack, Words>(matrix, first, last, in, y);
  }
}

// Packed nibbles whose rows begin in the middle of a byte, every second time: rows that do not are made of them.
template <bool kVnni, class Unpack>
void MultiplyNibbles(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  if (matrix.columns % 2 == 0) return MultiplyOne<kVnni, Unpack>(matrix, first, last, in, y);
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
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
    MultiplyOne<kVnni, Unpack>(alone, 0, 1, in, y + r);
  }
}

template <bool kVnni>
void MultiplyStored(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  switch (matrix.storage) {
    case Storage::i8: return MultiplyOne<kVnni, EightBits<true> >(matrix, first, last, in, y);
    case Storage::u8: return MultiplyOne<kVnni, EightBits<false> >(matrix, first, last, in, y);
    case Storage::i4: return MultiplyNibbles<kVnni, FourBits<true, 4> >(matrix, first, last, in, y);
    case Storage::u4: return MultiplyNibbles<kVnni, FourBits<false, 4> >(matrix, first, last, in, y);
    case Storage::i4_bytes: return MultiplyOne<kVnni, FourBits<true, 8> >(matrix, first, last, in, y);
    case Storage::u4_bytes: return MultiplyOne<kVnni, FourBits<false, 8> >(matrix, first, last, in, y);
    case Storage::group8: return MultiplyGrouped<kVnni, EightBits<false> >(matrix, first, last, in, y);
    case Storage::group4: return MultiplyGrouped<kVnni, FourBits<false, 4> >(matrix, first, last, in, y);
    case Storage::f32:
    case Storage::f16:
    case Storage::bf16: break;  // do not take integers
  }
}

void MultiplyIntegers(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
#if POISE_HAVE_VNNI
  if (__builtin_cpu_supports("avx512vnni") != 0) return MultiplyStored<true>(matrix, first, last, in, y);
#endif
  MultiplyStored<false>(matrix, first, last, in, y);
}

bool TakesIntegers(const StoredRows& matrix) {
  switch (matrix.storage) {
    case Storage::f32:
    case Storage::f16:
    case Storage::bf16: return false;
    case Storage::group8: return kBlock % matrix.group_size == 0;
    case Storage::group4: return kBlock % matrix.group_size == 0 && matrix.group_size >= 32;  // 8 words, a vector of every processor
    default: return true;
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(TakesIntegers);
HWY_EXPORT(MultiplyIntegers);

}  // namespace

bool takes_integers(const StoredRows& matrix) { return HWY_DYNAMIC_DISPATCH(TakesIntegers)(matrix); }

void multiply_integer_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyIntegers)(matrix, first, last, x, y);
}

}  // namespace poise
#endif
