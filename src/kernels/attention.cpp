#include "kernels/attention.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
using hn::MulAdd;

// Calls f for groups of four queries, then for two and one remaining ones, with their number as a constant.
template <typename F>
HWY_INLINE void ForQueries(std::size_t count, const F& f) {
  static_assert(kQueriesTogether == 4);
  std::size_t q = 0;
  for (; q + 4 <= count; q += 4) f(q, std::integral_constant<std::size_t, 4>());
  if (q + 2 <= count) {
    f(q, std::integral_constant<std::size_t, 2>());
    q += 2;
  }
  if (q < count) f(q, std::integral_constant<std::size_t, 1>());
}

// out [kCount, kKeysTogether] = scale * (queries times the keys of a block)
template <std::size_t kCount>
HWY_INLINE void ScoreBlock(const FloatRows& queries, std::size_t size, const float* keys, float scale, float* out) {
  constexpr std::size_t kVectors = kCount == 1 ? 4 : 2;  // a sum is sequential: at least four overlap
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t at = 0; at < kKeysTogether; at += kVectors * lanes) {
    hn::Vec<Floats> sums[kCount][kVectors];
    for (std::size_t q = 0; q < kCount; ++q) {
      for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = hn::Zero(Floats());
    }
    for (std::size_t e = 0; e < size; ++e) {
      hn::Vec<Floats> key[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) key[v] = Load(keys + e * kKeysTogether + at + v * lanes);
      HWY_UNROLL(4)
      for (std::size_t q = 0; q < kCount; ++q) {
        const auto x = hn::Set(Floats(), queries.data[q * queries.stride + e]);
        for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = MulAdd(x, key[v], sums[q][v]);
      }
    }
    const auto factor = hn::Set(Floats(), scale);
    for (std::size_t q = 0; q < kCount; ++q) {
      for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(hn::Mul(sums[q][v], factor), Floats(), out + q * kKeysTogether + at + v * lanes);
    }
  }
}

void AttentionScores(const FloatRows& queries, const CachedKeys& keys, std::size_t size, float scale, float* scores,
                     std::size_t stride) {
  static_assert(kKeysTogether % (4 * kMaxLanes) == 0);
  const std::size_t end = keys.begin + keys.count;
  for (std::size_t from = keys.begin; from < end;) {
    const std::size_t first = from % kKeysTogether;  // of the block's keys
    const std::size_t count = std::min(kKeysTogether - first, end - from);
    const float* const block = keys.data + from / kKeysTogether * keys.stride;
    ForQueries(queries.count, [&](std::size_t q, auto together) HWY_ATTR {
      HWY_ALIGN float all[kQueriesTogether * kKeysTogether];
      ScoreBlock<together()>({queries.data + q * queries.stride, queries.stride, together()}, size, block, scale, all);
      for (std::size_t i = 0; i < together(); ++i)
        std::memcpy(scores + (q + i) * stride + (from - keys.begin), all + i * kKeysTogether + first,
                    sizeof(float) * count);
    });
    from += count;
  }
}

// Whole vectors first, then single numbers. May ignore NaN.
float Largest(const float* data, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto largest = hn::Set(Floats(), data[0]);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, Load(data + i));
  if (i < count) largest = hn::Max(largest, hn::Set(Floats(), *std::max_element(data + i, data + count)));
  return hn::GetLane(hn::MaxOfLanes(Floats(), largest));
}

// Sums a few numbers in float32 before adding them to the sum.
double SumOfAll(const float* data, std::size_t count) {
  constexpr std::size_t kVectorsPerSum = 64;
  const std::size_t lanes = hn::Lanes(Floats());
  double total = 0;
  std::size_t i = 0;
  while (i + lanes <= count) {
    auto sum = hn::Zero(Floats());
    for (const std::size_t end = std::min(count, i + kVectorsPerSum * lanes); i + lanes <= end; i += lanes)
      sum = hn::Add(sum, Load(data + i));
    total += static_cast<double>(Sum(sum));
  }
  for (; i < count; ++i) total += static_cast<double>(data[i]);
  return total;
}

void Softmax(float* scores, std::size_t count) {
  if (count == 0) return;
  const auto largest = hn::Set(Floats(), Largest(scores, count));
  Transform(scores, count, [&](auto score, std::size_t) HWY_ATTR { return Exponential(hn::Sub(score, largest)); });
  const auto factor = hn::Set(Floats(), static_cast<float>(1.0 / SumOfAll(scores, count)));
  Transform(scores, count, [&](auto score, std::size_t) HWY_ATTR { return hn::Mul(score, factor); });
}

#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kVectorsTogether = 4;  // of values: 16 sums for 4 queries, of 32 registers
#else
constexpr std::size_t kVectorsTogether = 2;
#endif

// Adds to vectors of each of kCount results; `weights` and `out` belong to the first.
template <std::size_t kCount, std::size_t kVectors>
HWY_INLINE void AddToVectors(const FloatRows& weights, const FloatRows& values, std::size_t size, std::size_t at,
                             float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sums[kCount][kVectors];
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = Load(out + q * size + at + v * lanes);
  }
  for (std::size_t i = 0; i < values.count; ++i) {
    const float* const row = values.data + i * values.stride + at;
    hn::Vec<Floats> value[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) value[v] = Load(row + v * lanes);
    HWY_UNROLL(4)
    for (std::size_t q = 0; q < kCount; ++q) {
      const auto weight = hn::Set(Floats(), weights.data[q * weights.stride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = MulAdd(weight, value[v], sums[q][v]);
    }
  }
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[q][v], Floats(), out + q * size + at + v * lanes);
  }
}

// Adds to the last numbers of one result, which do not fill a vector.
HWY_INLINE void AddToTail(const float* weights, const FloatRows& values, std::size_t count, std::size_t at,
                          float* out) {
  auto sum = LoadTail(out + at, count);
  for (std::size_t i = 0; i < values.count; ++i)
    sum = MulAdd(hn::Set(Floats(), weights[i]), LoadTail(values.data + i * values.stride + at, count), sum);
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(sum, Floats(), buffer);
  std::memcpy(out + at, buffer, sizeof(float) * count);
}

void AddWeightedRows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  ForQueries(weights.count, [&](std::size_t q, auto together) HWY_ATTR {
    constexpr std::size_t kVectors = together() == 1 ? 4 : kVectorsTogether;
    const FloatRows weight_rows = {weights.data + q * weights.stride, weights.stride, together()};
    float* const to = out + q * size;
    std::size_t at = 0;
    for (; at + kVectors * lanes <= size; at += kVectors * lanes)
      AddToVectors<together(), kVectors>(weight_rows, values, size, at, to);
    for (; at + lanes <= size; at += lanes) AddToVectors<together(), 1>(weight_rows, values, size, at, to);
    if (at == size) return;
    for (std::size_t i = 0; i < together(); ++i)
      AddToTail(weight_rows.data + i * weight_rows.stride, values, size - at, at, to + i * size);
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(AttentionScores);
HWY_EXPORT(Softmax);
HWY_EXPORT(AddWeightedRows);

}  // namespace

void attention_scores(const FloatRows& queries, const CachedKeys& keys, std::size_t size, float scale, float* scores,
                      std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(AttentionScores)(queries, keys, size, scale, scores, stride);
}

void softmax(float* scores, std::size_t count) { HWY_DYNAMIC_DISPATCH(Softmax)(scores, count); }

void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(AddWeightedRows)(weights, values, size, out);
}

}  // namespace poise
#endif
