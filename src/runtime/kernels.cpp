#include "runtime/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Bytes = const std::uint8_t*;
constexpr std::size_t kMaxLanes = hn::MaxLanes(Floats());
using hn::LoadU;
using hn::MulAdd;

HWY_INLINE auto Load(const float* from) { return LoadU(Floats(), from); }

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

HWY_INLINE auto LoadTail(const float* from, std::size_t count) {
  HWY_ALIGN float buffer[kMaxLanes] = {};
  std::memcpy(buffer, from, sizeof(float) * count);
  return hn::Load(Floats(), buffer);
}

template <typename V>
HWY_INLINE float Sum(V lanes) {
  return hn::GetLane(hn::SumOfLanes(Floats(), lanes));
}

template <typename Loader>
HWY_INLINE float Dot(const Loader& loader, Bytes row, const float* x, std::size_t columns) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto sum = hn::Zero(Floats());
  std::size_t i = 0;
  for (; i + lanes <= columns; i += lanes) sum = MulAdd(loader(row, i), Load(x + i), sum);
  if (i < columns) sum = MulAdd(LoadTail(loader, row, i, columns - i), LoadTail(x + i, columns - i), sum);
  return Sum(sum);
}

// Four rows at a time keep four independent sums going.
template <typename Loader>
void MultiplyRows(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  const Loader loader(matrix);
  const std::size_t columns = matrix.columns;
  const std::size_t row_bytes = Loader::bytes(columns);
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t r = first;
  for (; r + 4 <= last; r += 4) {
    const Bytes row0 = reinterpret_cast<Bytes>(matrix.data) + r * row_bytes;
    const Bytes row1 = row0 + row_bytes;
    const Bytes row2 = row1 + row_bytes;
    const Bytes row3 = row2 + row_bytes;
    auto sum0 = hn::Zero(Floats());
    auto sum1 = sum0;
    auto sum2 = sum0;
    auto sum3 = sum0;
    std::size_t i = 0;
    for (; i + lanes <= columns; i += lanes) {
      const auto in = Load(x + i);
      sum0 = MulAdd(loader(row0, i), in, sum0);
      sum1 = MulAdd(loader(row1, i), in, sum1);
      sum2 = MulAdd(loader(row2, i), in, sum2);
      sum3 = MulAdd(loader(row3, i), in, sum3);
    }
    if (const std::size_t rest = columns - i; rest > 0) {
      const auto in = LoadTail(x + i, rest);
      sum0 = MulAdd(LoadTail(loader, row0, i, rest), in, sum0);
      sum1 = MulAdd(LoadTail(loader, row1, i, rest), in, sum1);
      sum2 = MulAdd(LoadTail(loader, row2, i, rest), in, sum2);
      sum3 = MulAdd(LoadTail(loader, row3, i, rest), in, sum3);
    }
    y[r] = Sum(sum0);
    y[r + 1] = Sum(sum1);
    y[r + 2] = Sum(sum2);
    y[r + 3] = Sum(sum3);
  }
  for (; r < last; ++r) y[r] = Dot(loader, reinterpret_cast<Bytes>(matrix.data) + r * row_bytes, x, columns);
}

template <typename Loader>
HWY_INLINE void DecodeRow(const Loader& loader, Bytes row, std::size_t columns, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= columns; i += lanes) hn::StoreU(loader(row, i), Floats(), out + i);
  if (i == columns) return;
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(LoadTail(loader, row, i, columns - i), Floats(), buffer);
  std::memcpy(out + i, buffer, sizeof(float) * (columns - i));
}

// Packed nibbles whose rows begin in the middle of a byte, every second time.
template <typename Loader>
void DecodeOddRows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  const Loader loader(matrix);
  const Bytes data = reinterpret_cast<Bytes>(matrix.data);
  for (std::size_t r = first; r < first + count; ++r, out += matrix.columns) {
    std::size_t element = r * matrix.columns;
    std::size_t columns = matrix.columns;
    float* to = out;
    if (element % 2 != 0) {
      *to++ = loader.element(data, element++);
      --columns;
    }
    DecodeRow(loader, data + element / 2, columns, to);
  }
}

template <typename Loader>
void DecodeRows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  const Loader loader(matrix);
  const std::size_t row_bytes = Loader::bytes(matrix.columns);
  for (std::size_t r = 0; r < count; ++r) {
    DecodeRow(loader, reinterpret_cast<Bytes>(matrix.data) + (first + r) * row_bytes, matrix.columns, out + r * matrix.columns);
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

// float16 numbers to float32, a handful at a time.
constexpr std::size_t kGroupsAtATime = 64;
HWY_INLINE void WidenHalves(const std::byte* from, std::size_t first, std::size_t count, float* out) {
  const LoadF16 loader{StoredRows()};
  const auto row = reinterpret_cast<Bytes>(from) + LoadF16::bytes(first);
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(loader(row, i), Floats(), out + i);
  if (i == count) return;
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(LoadTail(loader, row, i, count - i), Floats(), buffer);
  std::memcpy(out + i, buffer, sizeof(float) * (count - i));
}

// Calls use(i, values) for the vectors of a row from left to right. Requires: groups of whole vectors.
template <typename Codes, typename Use>
HWY_INLINE void VisitGroups(const StoredRows& matrix, std::size_t r, const Use& use) {
  const Codes codes;
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t groups = matrix.columns / matrix.group_size;
  const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * Codes::bytes(matrix.columns);
  float scales[kGroupsAtATime];
  float zeros[kGroupsAtATime];
  for (std::size_t first = 0; first < groups; first += kGroupsAtATime) {
    const std::size_t count = std::min(kGroupsAtATime, groups - first);
    WidenHalves(matrix.scales, r * groups + first, count, scales);
    WidenHalves(matrix.zeros, r * groups + first, count, zeros);
    for (std::size_t g = 0; g < count; ++g) {
      const auto scale = hn::Set(Floats(), scales[g]);
      const auto zero = hn::Set(Floats(), zeros[g]);
      const std::size_t begin = (first + g) * matrix.group_size;
      for (std::size_t i = begin; i < begin + matrix.group_size; i += lanes) use(i, hn::Mul(hn::Sub(codes(row, i), zero), scale));
    }
  }
}

template <typename Codes>
void DecodeGroups(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  for (std::size_t r = 0; r < count; ++r, out += matrix.columns) {
    VisitGroups<Codes>(matrix, first + r, [&](std::size_t i, auto values) HWY_ATTR { hn::StoreU(values, Floats(), out + i); });
  }
}

template <typename Codes>
void MultiplyGroups(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  for (std::size_t r = first; r < last; ++r) {
    auto sum = hn::Zero(Floats());
    VisitGroups<Codes>(matrix, r, [&](std::size_t i, auto values) HWY_ATTR { sum = MulAdd(values, Load(x + i), sum); });
    y[r] = Sum(sum);
  }
}

void Decode(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) {
  const bool odd = matrix.columns % 2 != 0;
  switch (matrix.storage) {
    case Storage::f32: return DecodeRows<LoadF32>(matrix, first, count, out);
    case Storage::f16: return DecodeRows<LoadF16>(matrix, first, count, out);
    case Storage::bf16: return DecodeRows<LoadBf16>(matrix, first, count, out);
    case Storage::i8: return DecodeRows<Load8<std::int8_t>>(matrix, first, count, out);
    case Storage::u8: return DecodeRows<Load8<std::uint8_t>>(matrix, first, count, out);
    case Storage::i4: return odd ? DecodeOddRows<Load4<true>>(matrix, first, count, out) : DecodeRows<Load4<true>>(matrix, first, count, out);
    case Storage::u4: return odd ? DecodeOddRows<Load4<false>>(matrix, first, count, out) : DecodeRows<Load4<false>>(matrix, first, count, out);
    case Storage::i4_bytes: return DecodeRows<Load4Bytes<true>>(matrix, first, count, out);
    case Storage::u4_bytes: return DecodeRows<Load4Bytes<false>>(matrix, first, count, out);
    case Storage::group8: return DecodeGroups<Codes8>(matrix, first, count, out);
    case Storage::group4: return DecodeGroups<Codes4>(matrix, first, count, out);
  }
}

// One row at a time by way of float32.
void MultiplyDecoded(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  std::vector<float> row(matrix.columns);
  const LoadF32 loader(matrix);
  for (std::size_t r = first; r < last; ++r) {
    Decode(matrix, r, 1, row.data());
    y[r] = Dot(loader, reinterpret_cast<Bytes>(row.data()), x, matrix.columns);
  }
}

void MultiplyVector(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  const bool packed = matrix.storage == Storage::i4 || matrix.storage == Storage::u4;
  if (packed && matrix.columns % 2 != 0) return MultiplyDecoded(matrix, first, last, x, y);
  switch (matrix.storage) {
    case Storage::f32: return MultiplyRows<LoadF32>(matrix, first, last, x, y);
    case Storage::f16: return MultiplyRows<LoadF16>(matrix, first, last, x, y);
    case Storage::bf16: return MultiplyRows<LoadBf16>(matrix, first, last, x, y);
    case Storage::i8: return MultiplyRows<Load8<std::int8_t>>(matrix, first, last, x, y);
    case Storage::u8: return MultiplyRows<Load8<std::uint8_t>>(matrix, first, last, x, y);
    case Storage::i4: return MultiplyRows<Load4<true>>(matrix, first, last, x, y);
    case Storage::u4: return MultiplyRows<Load4<false>>(matrix, first, last, x, y);
    case Storage::i4_bytes: return MultiplyRows<Load4Bytes<true>>(matrix, first, last, x, y);
    case Storage::u4_bytes: return MultiplyRows<Load4Bytes<false>>(matrix, first, last, x, y);
    case Storage::group8: return MultiplyGroups<Codes8>(matrix, first, last, x, y);
    case Storage::group4: return MultiplyGroups<Codes4>(matrix, first, last, x, y);
  }
}

// Two rows times four tokens: eight sums, which fit the registers of every processor.
HWY_INLINE void MultiplyTile(const float* row0, const float* row1, std::size_t columns, const float* x, float* out, std::size_t stride) {
  const std::size_t lanes = hn::Lanes(Floats());
  const float* x1 = x + columns;
  const float* x2 = x1 + columns;
  const float* x3 = x2 + columns;
  auto a0 = hn::Zero(Floats());
  auto a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  std::size_t i = 0;
  const auto step = [&](auto a, auto b, auto in0, auto in1, auto in2, auto in3) HWY_ATTR {
    a0 = MulAdd(a, in0, a0);
    a1 = MulAdd(a, in1, a1);
    a2 = MulAdd(a, in2, a2);
    a3 = MulAdd(a, in3, a3);
    b0 = MulAdd(b, in0, b0);
    b1 = MulAdd(b, in1, b1);
    b2 = MulAdd(b, in2, b2);
    b3 = MulAdd(b, in3, b3);
  };
  for (; i + lanes <= columns; i += lanes) step(Load(row0 + i), Load(row1 + i), Load(x + i), Load(x1 + i), Load(x2 + i), Load(x3 + i));
  if (const std::size_t rest = columns - i; rest > 0) {
    step(LoadTail(row0 + i, rest), LoadTail(row1 + i, rest), LoadTail(x + i, rest), LoadTail(x1 + i, rest), LoadTail(x2 + i, rest), LoadTail(x3 + i, rest));
  }
  out[0] = Sum(a0);
  out[stride] = Sum(a1);
  out[2 * stride] = Sum(a2);
  out[3 * stride] = Sum(a3);
  out[1] = Sum(b0);
  out[stride + 1] = Sum(b1);
  out[2 * stride + 1] = Sum(b2);
  out[3 * stride + 1] = Sum(b3);
}

void MultiplyBatch(const float* weights, std::size_t rows, std::size_t columns, const float* x, std::size_t tokens, float* out, std::size_t stride) {
  const StoredRows matrix = {.storage = Storage::f32, .data = reinterpret_cast<const std::byte*>(weights), .columns = columns};
  const std::size_t whole_rows = rows / 2 * 2;
  std::size_t t = 0;
  for (; t + 4 <= tokens; t += 4) {
    for (std::size_t r = 0; r < whole_rows; r += 2) {
      const float* row = weights + r * columns;
      MultiplyTile(row, row + columns, columns, x + t * columns, out + t * stride + r, stride);
    }
    for (std::size_t token = t; token < t + 4; ++token) MultiplyRows<LoadF32>(matrix, whole_rows, rows, x + token * columns, out + token * stride);
  }
  for (; t < tokens; ++t) MultiplyRows<LoadF32>(matrix, 0, rows, x + t * columns, out + t * stride);
}

void AttentionScores(const float* query, const CachedRows& keys, std::size_t size, float scale, float* scores) {
  const LoadF32 loader{StoredRows()};
  for (std::size_t i = 0; i < keys.count; ++i) scores[i] = scale * Dot(loader, reinterpret_cast<Bytes>(keys.data + i * keys.stride), query, size);
}

// Applies `f` to vectors of `data`, the last one filled up with zeros.
template <typename F>
HWY_INLINE void Transform(float* data, std::size_t count, const F& f) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(Load(data + i), i), Floats(), data + i);
  if (i == count) return;
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(f(LoadTail(data + i, count - i), i), Floats(), buffer);
  std::memcpy(data + i, buffer, sizeof(float) * (count - i));
}

// exp(x), where x is at most 88; NaN stays NaN. Highway's Exp is not defined for NaN and far outside.
template <typename V>
HWY_INLINE V Exponential(V x) {
  const auto nan = hn::IsNaN(x);
  const auto inside = hn::Max(hn::IfThenZeroElse(nan, x), hn::Set(Floats(), -110.0F));  // exp(-110) is 0 in float32
  return hn::IfThenElse(nan, x, hn::Exp(Floats(), inside));
}

void Softmax(float* scores, std::size_t count) {
  if (count == 0) return;
  const auto largest = hn::Set(Floats(), *std::max_element(scores, scores + count));
  Transform(scores, count, [&](auto score, std::size_t) HWY_ATTR { return Exponential(hn::Sub(score, largest)); });
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(scores[i]);
  const auto factor = hn::Set(Floats(), static_cast<float>(1.0 / sum));
  Transform(scores, count, [&](auto score, std::size_t) HWY_ATTR { return hn::Mul(score, factor); });
}

void AddWeightedRows(const float* weights, const CachedRows& values, std::size_t size, float* out) {
  for (std::size_t i = 0; i < values.count; ++i) {
    const auto weight = hn::Set(Floats(), weights[i]);
    const float* row = values.data + i * values.stride;
    const std::size_t lanes = hn::Lanes(Floats());
    Transform(out, size, [&](auto sum, std::size_t at) HWY_ATTR {
      const auto value = at + lanes <= size ? Load(row + at) : LoadTail(row + at, size - at);
      return MulAdd(weight, value, sum);
    });
  }
}

void SiluProduct(float* gate, const float* up, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  const auto one = hn::Set(Floats(), 1.0F);
  const auto most = hn::Set(Floats(), 88.0F);  // x / exp(88) is as good as zero
  Transform(gate, count, [&](auto x, std::size_t i) HWY_ATTR {
    const auto other = i + lanes <= count ? Load(up + i) : LoadTail(up + i, count - i);
    const auto exponential = Exponential(hn::Min(hn::Neg(x), most));
    return hn::Mul(hn::Div(x, hn::Add(one, exponential)), other);
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Decode);
HWY_EXPORT(MultiplyVector);
HWY_EXPORT(MultiplyBatch);
HWY_EXPORT(AttentionScores);
HWY_EXPORT(Softmax);
HWY_EXPORT(AddWeightedRows);
HWY_EXPORT(SiluProduct);

}  // namespace

void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out) { HWY_DYNAMIC_DISPATCH(Decode)(matrix, first, count, out); }

void multiply_vector(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyVector)(matrix, first, last, x, y);
}

void multiply_batch(const float* weights, std::size_t rows, std::size_t columns, const float* x, std::size_t tokens, float* out, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyBatch)(weights, rows, columns, x, tokens, out, stride);
}

void attention_scores(const float* query, const CachedRows& keys, std::size_t size, float scale, float* scores) {
  HWY_DYNAMIC_DISPATCH(AttentionScores)(query, keys, size, scale, scores);
}

void softmax(float* scores, std::size_t count) { HWY_DYNAMIC_DISPATCH(Softmax)(scores, count); }

void add_weighted_rows(const float* weights, const CachedRows& values, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(AddWeightedRows)(weights, values, size, out);
}

void silu_product(float* gate, const float* up, std::size_t count) { HWY_DYNAMIC_DISPATCH(SiluProduct)(gate, up, count); }

}  // namespace poise
#endif
