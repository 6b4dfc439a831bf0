#include <algorithm>
#include <cstring>

#include "runtime/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/attention_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "runtime/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
using hn::MulAdd;

void AttentionScores(const float* query, const CachedRows& keys, std::size_t size, float scale, float* scores) {
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t i = 0; i < keys.count; i += 4) {
    const auto row = [&](std::size_t k) { return keys.data + std::min(i + k, keys.count - 1) * keys.stride; };
    const float* row0 = row(0);
    const float* row1 = row(1);
    const float* row2 = row(2);
    const float* row3 = row(3);
    auto a = hn::Zero(Floats());
    auto b = a, c = a, d = a;
    const auto step = [&](auto x, auto k0, auto k1, auto k2, auto k3) HWY_ATTR {
      a = MulAdd(x, k0, a);
      b = MulAdd(x, k1, b);
      c = MulAdd(x, k2, c);
      d = MulAdd(x, k3, d);
    };
    std::size_t at = 0;
    for (; at + lanes <= size; at += lanes) step(Load(query + at), Load(row0 + at), Load(row1 + at), Load(row2 + at), Load(row3 + at));
    if (const std::size_t rest = size - at; rest > 0) {
      step(LoadTail(query + at, rest), LoadTail(row0 + at, rest), LoadTail(row1 + at, rest), LoadTail(row2 + at, rest), LoadTail(row3 + at, rest));
    }
    FourSums::of(Floats(), a, b, c, d).store(scores + i, keys.count - i);
  }
  for (std::size_t i = 0; i < keys.count; ++i) scores[i] *= scale;
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

// Whole vectors first, then one number after the other. A NaN may get lost.
float Largest(const float* data, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto largest = hn::Set(Floats(), data[0]);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, Load(data + i));
  if (i < count) largest = hn::Max(largest, hn::Set(Floats(), *std::max_element(data + i, data + count)));
  return hn::GetLane(hn::MaxOfLanes(Floats(), largest));
}

// Few enough are added up in float32 before they go into the sum.
double SumOfAll(const float* data, std::size_t count) {
  constexpr std::size_t kVectorsPerSum = 64;
  const std::size_t lanes = hn::Lanes(Floats());
  double total = 0;
  std::size_t i = 0;
  while (i + lanes <= count) {
    auto sum = hn::Zero(Floats());
    for (const std::size_t end = std::min(count, i + kVectorsPerSum * lanes); i + lanes <= end; i += lanes) sum = hn::Add(sum, Load(data + i));
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

void AddWeightedRows(const float* weights, const CachedRows& values, std::size_t size, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t at = 0;
  for (; at + 4 * lanes <= size; at += 4 * lanes) {
    auto a = Load(out + at);
    auto b = Load(out + at + lanes);
    auto c = Load(out + at + 2 * lanes);
    auto d = Load(out + at + 3 * lanes);
    for (std::size_t i = 0; i < values.count; ++i) {
      const float* row = values.data + i * values.stride + at;
      const auto weight = hn::Set(Floats(), weights[i]);
      a = MulAdd(weight, Load(row), a);
      b = MulAdd(weight, Load(row + lanes), b);
      c = MulAdd(weight, Load(row + 2 * lanes), c);
      d = MulAdd(weight, Load(row + 3 * lanes), d);
    }
    hn::StoreU(a, Floats(), out + at);
    hn::StoreU(b, Floats(), out + at + lanes);
    hn::StoreU(c, Floats(), out + at + 2 * lanes);
    hn::StoreU(d, Floats(), out + at + 3 * lanes);
  }
  for (; at < size; at += lanes) {
    const std::size_t count = std::min(lanes, size - at);
    auto sum = LoadTail(out + at, count);
    for (std::size_t i = 0; i < values.count; ++i) sum = MulAdd(hn::Set(Floats(), weights[i]), LoadTail(values.data + i * values.stride + at, count), sum);
    HWY_ALIGN float buffer[kMaxLanes];
    hn::Store(sum, Floats(), buffer);
    std::memcpy(out + at, buffer, sizeof(float) * count);
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

HWY_EXPORT(AttentionScores);
HWY_EXPORT(Softmax);
HWY_EXPORT(AddWeightedRows);
HWY_EXPORT(SiluProduct);

}  // namespace

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
