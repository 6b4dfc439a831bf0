#include "kernels/attention.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise-inl.hpp"
#include "kernels/vectors-inl.hpp"
#include "kernels/weighted_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

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

void AddFloatRows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  AddWeightedRows(weights, FloatValues{values.data, values.stride}, values.count, size, out);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Softmax);
HWY_EXPORT(AddFloatRows);

}  // namespace

void softmax(float* scores, std::size_t count) { HWY_DYNAMIC_DISPATCH(Softmax)(scores, count); }

void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(AddFloatRows)(weights, values, size, out);
}

}  // namespace poise
#endif
