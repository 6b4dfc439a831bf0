// Products of weights that are integer codes with x as integers.
#include <algorithm>
#include <memory>

#include <hwy/aligned_allocator.h>

#include "runtime/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/integer_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/integer_sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

bool TakesIntegers(const StoredRows&) { return false; }
void MultiplyIntegers(const StoredRows&, std::size_t, std::size_t, const KernelInput&, float*, std::size_t) {}

#else

// The last step of rows with one scale: what stands before x is code * scale + offset.
HWY_INLINE FourSums Scaled(const StoredRows& matrix, FourSums sums, const float* sum_of_x) {
  const FourSums::Tag tag;
  return FourSums(MulAdd(sums.lanes, hn::Set(tag, matrix.scale), hn::Set(tag, matrix.offset * sum_of_x[0])));
}

template <bool kVnni, class Unpack>
void MultiplyOne(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    FourSums total;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t begin = b * (2 * kBlock / Unpack::kPlanes);
      const std::size_t bytes = std::min(row_bytes - begin, 2 * kBlock / Unpack::kPlanes);
      FourExactSums<kVnni, Words> sums;
      sums.template add_bytes<Unpack>(four.rows[0] + begin, four.rows[1] + begin, four.rows[2] + begin, four.rows[3] + begin, bytes, 4 * row_bytes,
                                      in.integers(0, b), in.integers_of(b) / Unpack::kPlanes);
      total.add_product(in.scales(0)[b], sums.sums());
    }
    Scaled(matrix, total, in.sums(0)).store(y + r, last - r);
  }
}

template <bool kVnni, class Unpack, class D>
void MultiplyOneGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
  const std::size_t group_words = matrix.group_size / Unpack::kPlanes;
  GroupScales& scales = GroupScales::of_thread();
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    const FourPlaces places(0, last - r);
    scales.take(matrix, r, std::min<std::size_t>(4, last - r), in.sums_stride());
    const float* s0 = scales.scales(places.at[0]);
    const float* s1 = scales.scales(places.at[1]);
    const float* s2 = scales.scales(places.at[2]);
    const float* s3 = scales.scales(places.at[3]);
    FourSums total;
    std::size_t g = 0;
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t run = in.integers_of(b) / Unpack::kPlanes;
      const std::int16_t* x = in.integers(0, b);
      const std::size_t words = std::min(row_bytes / 2 - b * (kBlock / Unpack::kPlanes), kBlock / Unpack::kPlanes);
      FourGroupSums<D> block;
      for (std::size_t i = 0; i < words; i += group_words, ++g) {
        const std::size_t at = 2 * (b * (kBlock / Unpack::kPlanes) + i);
        FourExactSums<kVnni, D> group;
        group.template add_bytes<Unpack>(four.rows[0] + at, four.rows[1] + at, four.rows[2] + at, four.rows[3] + at, 2 * group_words, 4 * row_bytes, x + i,
                                         run);
        block.add(group, s0 + g, s1 + g, s2 + g, s3 + g);
      }
      total.add_product(in.scales(0)[b], block.sums());
    }
    scales.without_zeros(total, places.at, in.sums(0)).store(y + r, last - r);
  }
}

// Several tokens: a block of columns of some rows is unpacked once for all of them.
constexpr std::size_t kPanelRows = 64;
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kTileTokens = 6;         // with four rows 24 sums, which fit 32 registers
constexpr std::size_t kGroupedTileTokens = 3;  // 12, and 12 of floats
#else
constexpr std::size_t kTileTokens = 2;
constexpr std::size_t kGroupedTileTokens = 1;
#endif

// The codes of a row's block as 16-bit numbers, in planes as those of x.
template <class Unpack>
void UnpackBlock(Bytes from, std::size_t bytes, std::size_t run, std::int16_t* out) {
  const Words words;
  const std::size_t lanes = hn::Lanes(words);
  for (std::size_t i = 0; i < run; i += lanes) {
    const std::size_t rest = bytes - std::min(bytes, 2 * i);
    const auto codes = rest >= 2 * lanes ? LoadU(words, reinterpret_cast<const std::int16_t*>(from + 2 * i)) : LoadWordsTail(words, from + 2 * i, rest);
    hn::StoreU(Unpack::template plane<0>(codes), words, out + i);
    hn::StoreU(Unpack::template plane<1>(codes), words, out + run + i);
    if constexpr (Unpack::kPlanes == 4) {
      hn::StoreU(Unpack::template plane<2>(codes), words, out + 2 * run + i);
      hn::StoreU(Unpack::template plane<3>(codes), words, out + 3 * run + i);
    }
  }
}

// Four rows of a block and some tokens.
struct Tile {
  const std::int16_t* rows[4];
  const float* scales[4];  // of the block's groups
  const std::int16_t* x;   // tokens kBlock apart
  const float* x_scales;
  std::size_t x_scales_stride;
  float* out;
  std::size_t out_stride;
  std::size_t out_rows;  // at most 4

  HWY_INLINE void add(std::size_t t, const FourSums& sums) const {
    FourSums total = FourSums::load(out + t * out_stride, out_rows);
    total.add_product(x_scales[t * x_scales_stride], sums);
    total.store(out + t * out_stride, out_rows);
  }
};

// Products of `count` codes from `begin` on with up to six tokens.
template <bool kVnni, std::size_t kTokens, class D>
struct TileSums {
  FourExactSums<kVnni, D> t0, t1, t2, t3, t4, t5;

  HWY_INLINE TileSums() {}

  HWY_INLINE void add(const Tile& tile, std::size_t begin, std::size_t count) {
    const D words;
    const std::int16_t* w0 = tile.rows[0];
    const std::int16_t* w1 = tile.rows[1];
    const std::int16_t* w2 = tile.rows[2];
    const std::int16_t* w3 = tile.rows[3];
    const std::int16_t* x0 = tile.x;
    for (std::size_t i = begin; i < begin + count; i += hn::Lanes(words)) {
      const auto a = LoadU(words, w0 + i);
      const auto b = LoadU(words, w1 + i);
      const auto c = LoadU(words, w2 + i);
      const auto d = LoadU(words, w3 + i);
      t0.add(a, b, c, d, LoadU(words, x0 + i));
      if constexpr (kTokens > 1) t1.add(a, b, c, d, LoadU(words, x0 + kBlock + i));
      if constexpr (kTokens > 2) t2.add(a, b, c, d, LoadU(words, x0 + 2 * kBlock + i));
      if constexpr (kTokens > 3) t3.add(a, b, c, d, LoadU(words, x0 + 3 * kBlock + i));
      if constexpr (kTokens > 4) t4.add(a, b, c, d, LoadU(words, x0 + 4 * kBlock + i));
      if constexpr (kTokens > 5) t5.add(a, b, c, d, LoadU(words, x0 + 5 * kBlock + i));
    }
  }
};

template <bool kVnni, std::size_t kTokens>
HWY_INLINE void MultiplyTile(const Tile& tile, std::size_t codes) {
  TileSums<kVnni, kTokens, Words> sums;
  sums.add(tile, 0, codes);
  tile.add(0, sums.t0.sums());
  if constexpr (kTokens > 1) tile.add(1, sums.t1.sums());
  if constexpr (kTokens > 2) tile.add(2, sums.t2.sums());
  if constexpr (kTokens > 3) tile.add(3, sums.t3.sums());
  if constexpr (kTokens > 4) tile.add(4, sums.t4.sums());
  if constexpr (kTokens > 5) tile.add(5, sums.t5.sums());
}

// `run` words in each plane of the block, `words` of them in groups of `group_words`.
template <bool kVnni, std::size_t kPlanes, std::size_t kTokens, class D>
HWY_INLINE void MultiplyTileGrouped(const Tile& tile, std::size_t run, std::size_t words, std::size_t group_words) {
  FourGroupSums<D> t0, t1, t2;
  for (std::size_t g = 0; g * group_words < words; ++g) {
    TileSums<kVnni, kTokens, D> sums;
    for (std::size_t p = 0; p < kPlanes; ++p) sums.add(tile, p * run + g * group_words, group_words);
    const auto add = [&](FourGroupSums<D>& to, const FourExactSums<kVnni, D>& group)
                         HWY_ATTR { to.add(group, tile.scales[0] + g, tile.scales[1] + g, tile.scales[2] + g, tile.scales[3] + g); };
    add(t0, sums.t0);
    if constexpr (kTokens > 1) add(t1, sums.t1);
    if constexpr (kTokens > 2) add(t2, sums.t2);
  }
  tile.add(0, t0.sums());
  if constexpr (kTokens > 1) tile.add(1, t1.sums());
  if constexpr (kTokens > 2) tile.add(2, t2.sums());
}

// Calls use(tile, tokens) for every tile of some rows' block; tile.scales is not set.
template <class Use>
HWY_INLINE void ForTiles(const KernelInput& in, std::size_t block, std::size_t tokens_each, const std::int16_t* panel, std::size_t rows, float* y,
                         std::size_t stride, const Use& use) {
  Tile tile = {};
  tile.x_scales_stride = in.blocks();
  tile.out_stride = stride;
  for (std::size_t t = 0; t < in.tokens(); t += tokens_each) {
    tile.x = in.integers(t, block);
    tile.x_scales = in.scales(t) + block;
    for (std::size_t r = 0; r < rows; r += 4) {
      const FourPlaces places(r, rows);
      for (std::size_t i = 0; i < 4; ++i) tile.rows[i] = panel + places.at[i] * kBlock;
      tile.out = y + t * stride + r;
      tile.out_rows = std::min<std::size_t>(4, rows - r);
      use(tile, places, std::min(tokens_each, in.tokens() - t));
    }
  }
}

// Zeroes y, and calls use(block, panel) with the block's codes for every block of rows [first, first + rows).
template <class Unpack, class Use>
HWY_INLINE void ForBlocks(const StoredRows& matrix, std::size_t first, std::size_t rows, const KernelInput& in, float* y, std::size_t stride, const Use& use) {
  thread_local const auto panel = hwy::AllocateAligned<std::int16_t>(kPanelRows * kBlock);
  const std::size_t row_bytes = RowBytes<Unpack>(matrix);
  for (std::size_t t = 0; t < in.tokens(); ++t) std::fill_n(y + t * stride, rows, 0.0F);
  for (std::size_t b = 0; b < in.blocks(); ++b) {
    const std::size_t begin = b * (2 * kBlock / Unpack::kPlanes);
    const std::size_t bytes = std::min(row_bytes - begin, 2 * kBlock / Unpack::kPlanes);
    for (std::size_t r = 0; r < rows; ++r) {
      const Bytes from = reinterpret_cast<Bytes>(matrix.data) + (first + r) * row_bytes + begin;
      UnpackBlock<Unpack>(from, bytes, in.integers_of(b) / Unpack::kPlanes, panel.get() + r * kBlock);
    }
    use(b, panel.get());
  }
}

// Calls change(sums, places, token) for four rows at a time of y, and writes back what it makes of them.
template <class Change>
HWY_INLINE void ChangeSums(std::size_t rows, std::size_t tokens, float* y, std::size_t stride, const Change& change) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; r += 4) {
      float* at = y + t * stride + r;
      change(FourSums::load(at, rows - r), FourPlaces(r, rows), t).store(at, rows - r);
    }
  }
}

template <bool kVnni, class Unpack>
void MultiplyMany(const StoredRows& matrix, std::size_t first, std::size_t rows, const KernelInput& in, float* y, std::size_t stride) {
  ForBlocks<Unpack>(matrix, first, rows, in, y, stride, [&](std::size_t b, const std::int16_t* panel) HWY_ATTR {
    const std::size_t codes = in.integers_of(b);
    ForTiles(in, b, kTileTokens, panel, rows, y, stride, [&](const Tile& tile, const FourPlaces&, std::size_t tokens) HWY_ATTR {
      switch (tokens) {
        case 1: return MultiplyTile<kVnni, 1>(tile, codes);
        case 2: return MultiplyTile<kVnni, 2>(tile, codes);
        case 3: return MultiplyTile<kVnni, 3>(tile, codes);
        case 4: return MultiplyTile<kVnni, 4>(tile, codes);
        case 5: return MultiplyTile<kVnni, 5>(tile, codes);
        default: return MultiplyTile<kVnni, 6>(tile, codes);
      }
    });
  });
  ChangeSums(rows, in.tokens(), y, stride, [&](FourSums sums, const FourPlaces&, std::size_t t) HWY_ATTR { return Scaled(matrix, sums, in.sums(t)); });
}

template <bool kVnni, class Unpack, class D>
void MultiplyManyGrouped(const StoredRows& matrix, std::size_t first, std::size_t rows, const KernelInput& in, float* y, std::size_t stride) {
  constexpr std::size_t kPlanes = Unpack::kPlanes;
  const std::size_t group_words = matrix.group_size / kPlanes;
  const std::size_t row_words = matrix.columns / kPlanes;
  GroupScales& scales = GroupScales::of_thread();
  scales.take(matrix, first, rows, in.sums_stride());
  ForBlocks<Unpack>(matrix, first, rows, in, y, stride, [&](std::size_t b, const std::int16_t* panel) HWY_ATTR {
    const std::size_t run = in.integers_of(b) / kPlanes;
    const std::size_t words = std::min(row_words - b * (kBlock / kPlanes), kBlock / kPlanes);
    ForTiles(in, b, kGroupedTileTokens, panel, rows, y, stride, [&](Tile tile, const FourPlaces& places, std::size_t tokens) HWY_ATTR {
      for (std::size_t i = 0; i < 4; ++i) tile.scales[i] = scales.scales(places.at[i]) + b * (kBlock / matrix.group_size);
      switch (tokens) {
        case 1: return MultiplyTileGrouped<kVnni, kPlanes, 1, D>(tile, run, words, group_words);
        case 2: return MultiplyTileGrouped<kVnni, kPlanes, 2, D>(tile, run, words, group_words);
        default: return MultiplyTileGrouped<kVnni, kPlanes, 3, D>(tile, run, words, group_words);
      }
    });
  });
  ChangeSums(rows, in.tokens(), y, stride,
             [&](FourSums sums, const FourPlaces& places, std::size_t t) HWY_ATTR { return scales.without_zeros(sums, places.at, in.sums(t)); });
}

template <bool kVnni, class Unpack>
void MultiplyScaled(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  if (in.tokens() == 1) return MultiplyOne<kVnni, Unpack>(matrix, first, last, in, y);
  for (std::size_t r = first; r < last; r += kPanelRows) MultiplyMany<kVnni, Unpack>(matrix, r, std::min(kPanelRows, last - r), in, y + r, stride);
}

template <bool kVnni, class Unpack, class D>
void MultiplyGroupsOf(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  if (in.tokens() == 1) return MultiplyOneGrouped<kVnni, Unpack, D>(matrix, first, last, in, y);
  for (std::size_t r = first; r < last; r += kPanelRows) {
    MultiplyManyGrouped<kVnni, Unpack, D>(matrix, r, std::min(kPanelRows, last - r), in, y + r, stride);
  }
}

// Vectors of words no longer than a group.
template <bool kVnni, class Unpack>
void MultiplyGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  switch (matrix.group_size / Unpack::kPlanes) {
    case 8: return MultiplyGroupsOf<false, Unpack, hn::CappedTag<std::int16_t, 8> >(matrix, first, last, in, y, stride);
    case 16: return MultiplyGroupsOf<false, Unpack, hn::CappedTag<std::int16_t, 16> >(matrix, first, last, in, y, stride);
    default: return MultiplyGroupsOf<kVnni, Unpack, Words>(matrix, first, last, in, y, stride);
  }
}

// Packed nibbles whose rows begin in the middle of a byte, every second time: rows that do not are made of them.
template <bool kVnni, class Unpack>
void MultiplyNibbles(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  if (matrix.columns % 2 == 0) return MultiplyScaled<kVnni, Unpack>(matrix, first, last, in, y, stride);
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
    MultiplyScaled<kVnni, Unpack>(alone, 0, 1, in, y + r, stride);
  }
}

template <bool kVnni>
void MultiplyStored(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  switch (matrix.storage) {
    case Storage::i8: return MultiplyScaled<kVnni, EightBits<true> >(matrix, first, last, in, y, stride);
    case Storage::u8: return MultiplyScaled<kVnni, EightBits<false> >(matrix, first, last, in, y, stride);
    case Storage::i4: return MultiplyNibbles<kVnni, FourBits<true, 4> >(matrix, first, last, in, y, stride);
    case Storage::u4: return MultiplyNibbles<kVnni, FourBits<false, 4> >(matrix, first, last, in, y, stride);
    case Storage::i4_bytes: return MultiplyScaled<kVnni, FourBits<true, 8> >(matrix, first, last, in, y, stride);
    case Storage::u4_bytes: return MultiplyScaled<kVnni, FourBits<false, 8> >(matrix, first, last, in, y, stride);
    case Storage::group8: return MultiplyGrouped<kVnni, EightBits<false> >(matrix, first, last, in, y, stride);
    case Storage::group4: return MultiplyGrouped<kVnni, FourBits<false, 4> >(matrix, first, last, in, y, stride);
    case Storage::f32:
    case Storage::f16:
    case Storage::bf16: break;  // do not take integers
  }
}

void MultiplyIntegers(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
#if POISE_HAVE_VNNI
  if (__builtin_cpu_supports("avx512vnni") != 0) return MultiplyStored<true>(matrix, first, last, in, y, stride);
#endif
  MultiplyStored<false>(matrix, first, last, in, y, stride);
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

void multiply_integer_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyIntegers)(matrix, first, last, x, y, stride);
}

}  // namespace poise
#endif
