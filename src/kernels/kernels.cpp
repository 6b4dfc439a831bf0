#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

using Bytes = const std::uint8_t*;
using hn::LoadU;
using hn::MulAdd;

// Each loader makes a vector of float32 from the elements of a row from an index on. `offset(i)` is the byte where element
// i begins, `bytes(n)` what n elements take.
struct LoadF32 {
  explicit LoadF32(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 4 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const { return LoadU(Floats(), reinterpret_cast<const float*>(row + bytes(i))); }
};

struct LoadF16 {
  explicit LoadF16(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    return hn::PromoteTo(Floats(), LoadU(halves, reinterpret_cast<const hwy::float16_t*>(row + bytes(i))));
  }
};

struct LoadBf16 {
  explicit LoadBf16(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const hn::RebindToUnsigned<Floats> words;
    const auto codes = LoadU(halves, reinterpret_cast<const std::uint16_t*>(row + bytes(i)));
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, codes)));
  }
};

// What the loaders of integer codes share.
struct Scaled {
  explicit Scaled(const StoredRows& matrix) : scale(matrix.scale), offset(matrix.offset) {}
  template <typename Codes>
  HWY_INLINE auto apply(Codes codes) const {
    const hn::RebindToSigned<Floats> integers;
    return MulAdd(hn::ConvertTo(Floats(), hn::PromoteTo(integers, codes)), hn::Set(Floats(), scale), hn::Set(Floats(), offset));
  }
  float scale;
  float offset;
};

template <typename Code>
struct Load8 : Scaled {
  using Scaled::Scaled;
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const { return apply(LoadU(hn::Rebind<Code, Floats>(), reinterpret_cast<const Code*>(row + i))); }
};

// The low nibbles as numbers from -8 to 7.
template <typename Nibbles>
HWY_INLINE auto SignExtend(Nibbles nibbles) {
  const hn::Rebind<std::uint8_t, Floats> codes;
  const hn::Rebind<std::int8_t, Floats> signed_codes;
  const auto bit = hn::Set(codes, 8);
  return hn::BitCast(signed_codes, hn::Sub(hn::Xor(nibbles, bit), bit));
}

template <bool kSigned>
struct Load4Bytes : Scaled {
  using Scaled::Scaled;
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint8_t, Floats> codes;
    const auto nibbles = hn::And(LoadU(codes, row + i), hn::Set(codes, 15));
    if constexpr (kSigned) {
      return apply(SignExtend(nibbles));
    } else {
      return apply(nibbles);
    }
  }
};

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

// Requires: rows begin on whole bytes.
template <bool kSigned>
struct Load4 : Scaled {
  using Scaled::Scaled;
  static std::size_t bytes(std::size_t count) { return (count + 1) / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const auto nibbles = LoadNibbles(row, i);
    if constexpr (kSigned) {
      return apply(SignExtend(nibbles));
    } else {
      return apply(nibbles);
    }
  }
  // One element alone; the same rounding as above.
  float element(Bytes data, std::size_t i) const {
    const int code = static_cast<int>(Nibble(data, i));
    HWY_ALIGN float lanes[kMaxLanes];
    const auto value = hn::Set(Floats(), static_cast<float>(kSigned ? (code ^ 8) - 8 : code));
    hn::Store(MulAdd(value, hn::Set(Floats(), scale), hn::Set(Floats(), offset)), Floats(), lanes);
    return lanes[0];
  }
};

// The last `count` elements of a row, filled up with whatever zero bytes stand for.
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

template <bool kSigned>
void DecodeNibbles(const StoredRows& matrix, const DecodedPart& part) {
  if (matrix.columns % 2 == 0) return DecodeRows<Load4<kSigned>>(matrix, part);
  // Rows begin in the middle of a byte, every second time.
  const Load4<kSigned> loader(matrix);
  const Bytes data = reinterpret_cast<Bytes>(matrix.data);
  for (std::size_t r = part.first; r < part.last; ++r) {
    std::size_t element = r * matrix.columns + part.begin;
    std::size_t count = part.count;
    float* to = part.out + (r - part.first) * part.stride;
    if (element % 2 != 0) {
      *to++ = loader.element(data, element++);
      --count;
    }
    DecodeElements(loader, data + element / 2, 0, count, to);
  }
}

// The unsigned codes of group-quantized rows as float32.
struct Codes8 {
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i)));
  }
};

struct Codes4 {
  static std::size_t bytes(std::size_t count) { return count / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadNibbles(row, i)));
  }
};

// One float16 number in every lane.
HWY_INLINE auto Broadcast(const std::byte* halves, std::size_t index) {
  const hn::Rebind<hwy::float16_t, Floats> narrow;
  std::uint16_t bits = 0;
  std::memcpy(&bits, halves + 2 * index, 2);
  return hn::PromoteTo(Floats(), hn::BitCast(narrow, hn::Set(hn::RebindToUnsigned<decltype(narrow)>(), bits)));
}

// Groups are whole vectors, as columns of a part are.
template <typename Codes>
void DecodeGroups(const StoredRows& matrix, const DecodedPart& part) {
  const Codes codes;
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t groups = matrix.columns / matrix.group_size;
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * Codes::bytes(matrix.columns);
    float* out = part.out + (r - part.first) * part.stride;
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t g = (part.begin + i) / matrix.group_size;
      const std::size_t end = std::min(part.count, (g + 1) * matrix.group_size - part.begin);
      const auto scale = Broadcast(matrix.scales, r * groups + g);
      const auto zero = Broadcast(matrix.zeros, r * groups + g);
      for (; i < end; i += lanes) hn::StoreU(hn::Mul(hn::Sub(codes(row, part.begin + i), zero), scale), Floats(), out + i);
    }
  }
}

void DecodePart(const StoredRows& matrix, const DecodedPart& part) {
  switch (matrix.storage) {
    case Storage::f32: return DecodeRows<LoadF32>(matrix, part);
    case Storage::f16: return DecodeRows<LoadF16>(matrix, part);
    case Storage::bf16: return DecodeRows<LoadBf16>(matrix, part);
    case Storage::i8: return DecodeRows<Load8<std::int8_t>>(matrix, part);
    case Storage::u8: return DecodeRows<Load8<std::uint8_t>>(matrix, part);
    case Storage::i4: return DecodeNibbles<true>(matrix, part);
    case Storage::u4: return DecodeNibbles<false>(matrix, part);
    case Storage::i4_bytes: return DecodeRows<Load4Bytes<true>>(matrix, part);
    case Storage::u4_bytes: return DecodeRows<Load4Bytes<false>>(matrix, part);
    case Storage::group8: return DecodeGroups<Codes8>(matrix, part);
    case Storage::group4: return DecodeGroups<Codes4>(matrix, part);
  }
}

void Split(const float* x, std::size_t count, std::uint16_t* high, std::uint16_t* low) {
  const hn::RebindToSigned<Floats> words;
  const hn::RebindToUnsigned<Floats> bits;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const auto rounded = [&](auto value) {
    const auto half = hn::Set(words, 0x7fff);
    const auto odd = hn::And(hn::BitCast(words, hn::ShiftRight<16>(hn::BitCast(bits, value))), hn::Set(words, 1));
    return hn::Add(value, hn::Add(half, odd));
  };
  const auto upper = [&](auto value) { return hn::ShiftRight<16>(hn::BitCast(bits, value)); };
  for (std::size_t i = 0; i < count; i += hn::Lanes(Floats())) {
    const auto number = Load(x + i);
    const auto word = hn::BitCast(words, number);
    const auto magnitude = hn::And(word, hn::Set(words, 0x7fffffff));
    const auto is_cut = hn::Gt(magnitude, hn::Set(words, 0x7f7f7fff));
    const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(words, 0x7f800000)), hn::Set(words, 0x400000));
    const auto first = upper(hn::IfThenElse(is_cut, hn::Or(word, quiet), rounded(word)));
    const auto rest = hn::Sub(number, hn::BitCast(Floats(), hn::ShiftLeft<16>(first)));
    const auto has_rest = hn::Lt(magnitude, hn::Set(words, 0x7f800000));
    const auto second = upper(rounded(hn::IfThenElseZero(has_rest, hn::BitCast(words, rest))));
    hn::StoreU(hn::TruncateTo(halves, first), halves, high + i);
    hn::StoreU(hn::TruncateTo(halves, second), halves, low + i);
  }
}

// Every sum of products goes block by block, and then the blocks are added: the longer a sum, the more float32 rounds away.
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

// One token, straight from the stored bytes. The last rows are taken twice where there are not four.
template <typename Loader>
void MultiplyOne(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::bytes(columns);
  const std::size_t ahead = BytesAhead(row_bytes);
  const std::size_t lanes = hn::Lanes(Floats());
  const float* x = in.one();
  for (std::size_t r = first; r < last; r += 4) {
    const auto row = [&](std::size_t i) { return reinterpret_cast<Bytes>(matrix.data) + std::min(r + i, last - 1) * row_bytes; };
    const Bytes row0 = row(0);
    const Bytes row1 = row(1);
    const Bytes row2 = row(2);
    const Bytes row3 = row(3);
    FourSums total;
    for (std::size_t i = 0; i < columns;) {
      const std::size_t end = std::min(columns, i + kOneBlock);
      FourRows block;
      for (; i + lanes <= end; i += lanes) {
        PrefetchAhead(row0 + Loader::bytes(i), row1 + Loader::bytes(i), row2 + Loader::bytes(i), row3 + Loader::bytes(i), ahead);
        block.add(loader(row0, i), loader(row1, i), loader(row2, i), loader(row3, i), Load(x + i));
      }
      if (const std::size_t rest = end - i; rest > 0) {
        block.add(LoadTail(loader, row0, i, rest), LoadTail(loader, row1, i, rest), LoadTail(loader, row2, i, rest), LoadTail(loader, row3, i, rest),
                  LoadTail(x + i, rest));
        i = end;
      }
      total.add(block.sums());
    }
    total.store(y + r, last - r);
  }
}

// One token where weights are neither floats nor taken with integers: four rows at a time become float32.
void MultiplyOneDecoded(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y) {
  constexpr std::size_t kRows = 4;
  thread_local std::vector<float> rows;
  if (rows.size() < kRows * matrix.columns) rows.resize(kRows * matrix.columns);
  const StoredRows decoded = {.storage = Storage::f32, .data = reinterpret_cast<const std::byte*>(rows.data()), .columns = matrix.columns};
  for (std::size_t r = first; r < last; r += kRows) {
    const std::size_t count = std::min(kRows, last - r);
    DecodePart(matrix, {r, r + count, 0, matrix.columns, rows.data(), matrix.columns});
    MultiplyOne<LoadF32>(decoded, 0, count, in, y + r);
  }
}

// Several tokens lie side by side in vectors. A panel of rows becomes float32, block by block; each of its weights meets all tokens.
constexpr std::size_t kTogether = KernelInput::kTogether;
constexpr std::size_t kBlock = KernelInput::kFloatBlock;  // of a panel 64 KiB, of x 32
constexpr std::size_t kPanelStride = kBlock + 16;         // rows whose distance is a power of two would push each other out of the cache
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kSumRows = 12;  // with two vectors of tokens 24 sums, which fit 32 registers
#else
constexpr std::size_t kSumRows = 6;
#endif
static_assert(kPanelRows % kSumRows == 0);

// Adds to sums [kSumRows, kTogether] the products of a tile's rows with some vectors of tokens.
template <std::size_t kVectors>
HWY_INLINE void MultiplyTile(const float* panel, const float* x, std::size_t columns, float* sums) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sum[kSumRows][kVectors];
  HWY_UNROLL(12)
  for (std::size_t r = 0; r < kSumRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(Floats());
  }
  constexpr std::size_t kAhead = 8;  // columns: from the second cache into the first, in time
  for (std::size_t i = 0; i < columns; ++i) {
    hn::Vec<Floats> in[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      hwy::Prefetch(x + (i + kAhead) * kTogether + v * lanes);
      in[v] = Load(x + i * kTogether + v * lanes);
    }
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < kSumRows; ++r) {
      const auto weight = hn::Set(Floats(), panel[r * kPanelStride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = MulAdd(weight, in[v], sum[r][v]);
    }
  }
  HWY_UNROLL(12)
  for (std::size_t r = 0; r < kSumRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = sums + r * kTogether + v * lanes;
      hn::StoreU(hn::Add(Load(to), sum[r][v]), Floats(), to);
    }
  }
}

// A panel of float32 weights and the sums of its rows, [tokens / kTogether, kPanelRows, kTogether]. A thread keeps its memory.
struct Panel {
  static Panel& of_thread() {
    thread_local Panel panel;
    return panel;
  }

  void begin(std::size_t groups) {
    const std::size_t needed = groups * kPanelRows * kTogether;
    if (sums.size() < needed) sums.resize(needed);
    std::fill_n(sums.begin(), needed, 0.0F);
  }

  // Products of a block of `rows` rows with `tokens` tokens. Rows behind them that share a tile hold what they held.
  void multiply(std::size_t rows, std::size_t columns, const float* x, std::size_t tokens, float* out) const {
    const std::size_t lanes = hn::Lanes(Floats());
    for (std::size_t r = 0; r < rows; r += kSumRows) {
      for (std::size_t t = 0; t < tokens; t += 2 * lanes) {
        const float* tile = weights.data() + r * kPanelStride;
        float* to = out + r * kTogether + t;
        if (t + lanes < tokens) {
          MultiplyTile<2>(tile, x + t, columns, to);
        } else {
          MultiplyTile<1>(tile, x + t, columns, to);
        }
      }
    }
  }

  AlignedFloats weights = AlignedFloats(kPanelRows * kPanelStride);
  AlignedFloats sums;
};

// Asks for the bytes of a block that comes next: `count` rows from the first on, from a column on.
void PrefetchBlock(const StoredRows& matrix, std::size_t first, std::size_t count, std::size_t column) {
  constexpr std::size_t kLine = 64;
  const std::size_t bits = bits_of(matrix.storage);
  const std::size_t bytes = std::min(kBlock, matrix.columns - column) * bits / 8;
  for (std::size_t r = first; r < first + count; ++r) {
    const std::byte* const row = matrix.data + (r * matrix.columns + column) * bits / 8;
    for (std::size_t i = 0; i < bytes; i += kLine) hwy::Prefetch(row + i);
  }
}

void MultiplyMany(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  Panel& panel = Panel::of_thread();
  for (std::size_t r = first; r < last; r += kPanelRows) {
    const std::size_t rows = std::min(kPanelRows, last - r);
    panel.begin(in.groups());
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t columns = std::min(kBlock, matrix.columns - b * kBlock);
      DecodePart(matrix, {r, r + rows, b * kBlock, columns, panel.weights.data(), kPanelStride});
      for (std::size_t g = 0; g < in.groups(); ++g) {
        // Memory is asked for a few rows at a time, while there is something to compute.
        if (b + 1 < in.blocks()) PrefetchBlock(matrix, r + rows * g / in.groups(), rows * (g + 1) / in.groups() - rows * g / in.groups(), (b + 1) * kBlock);
        panel.multiply(rows, columns, in.group(g, b), std::min(kTogether, in.tokens() - g * kTogether), panel.sums.data() + g * kPanelRows * kTogether);
      }
    }
    for (std::size_t t = 0; t < in.tokens(); ++t) {
      const float* sums = panel.sums.data() + t / kTogether * kPanelRows * kTogether + t % kTogether;
      for (std::size_t i = 0; i < rows; ++i) y[t * stride + r + i] = sums[i * kTogether];
    }
  }
}

void MultiplyFloats(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y, std::size_t stride) {
  if (in.tokens() > 1) return MultiplyMany(matrix, first, last, in, y, stride);
  switch (matrix.storage) {
    case Storage::f32: return MultiplyOne<LoadF32>(matrix, first, last, in, y);
    case Storage::f16: return MultiplyOne<LoadF16>(matrix, first, last, in, y);
    case Storage::bf16: return MultiplyOne<LoadBf16>(matrix, first, last, in, y);
    default: return MultiplyOneDecoded(matrix, first, last, in, y);
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(DecodePart);
HWY_EXPORT(Split);
HWY_EXPORT(MultiplyFloats);

}  // namespace

void decode_part(const StoredRows& matrix, const DecodedPart& part) { HWY_DYNAMIC_DISPATCH(DecodePart)(matrix, part); }

void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  decode_part(matrix, {first, first + count, 0, matrix.columns, out, matrix.columns});
}

void split_floats(const float* x, std::size_t count, std::uint16_t* high, std::uint16_t* low) { HWY_DYNAMIC_DISPATCH(Split)(x, count, high, low); }

void multiply_float_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloats)(matrix, first, last, x, y, stride);
}

}  // namespace poise
#endif
