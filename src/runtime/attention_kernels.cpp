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

HWY_INLINE float Dot(const float* a, const float* b, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto sum = hn::Zero(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) sum = MulAdd(Load(a + i), Load(b + i), sum);
  if (i < count) sum = MulAdd(LoadTail(a + i, count - i), LoadTail(b + i, count - i), sum);
  return Sum(sum);
}

void AttentionScores(const float* query, const CachedRows& keys, std::size_t size, float scale, float* scores) {
  for (std::size_t i = 0; i < keys.count; ++i) scores[i] = scale * Dot(keys.data + i * keys.stride, query, size);
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
