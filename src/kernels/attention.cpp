#include "kernels/cache_type.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Returns the largest of `count` numbers. May ignore a NaN, or return it. Requires: count > 0.
float FindLargest(const float* data, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto largest = hn::Set(Floats(), data[0]);
  std::size_t i = 0;
  // Four independent accumulators hide the latency of Max().
  auto second = largest;
  auto third = largest;
  auto fourth = largest;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    largest = hn::Max(largest, Load(data + i));
    second = hn::Max(second, Load(data + i + lanes));
    third = hn::Max(third, Load(data + i + 2 * lanes));
    fourth = hn::Max(fourth, Load(data + i + 3 * lanes));
  }
  largest = hn::Max(hn::Max(largest, second), hn::Max(third, fourth));
  for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, Load(data + i));
  if (i < count) largest = hn::Max(largest, hn::Set(Floats(), *std::max_element(data + i, data + count)));
  return hn::GetLane(hn::MaxOfLanes(Floats(), largest));
}

double ComputeExponentials(float* scores, std::size_t count, float scale, const float* sink) {
  constexpr std::size_t kOfSum = 64;  // numbers that are summed in float32 before the sum is added to `total`
  const std::size_t lanes = hn::Lanes(Floats());
  // Subtracts the largest score before scaling, so that no exponent is above 0.
  const float of_sink = sink == nullptr ? -std::numeric_limits<float>::infinity() : *sink / scale;
  const float most = count == 0 ? of_sink : std::max(of_sink, FindLargest(scores, count));
  const auto factor = hn::Set(Floats(), scale);
  const auto largest = hn::Set(Floats(), most);
  const auto exponential = [&](auto x) HWY_ATTR { return ComputeExponential(hn::Mul(hn::Sub(x, largest), factor)); };
  double total = sink == nullptr ? 0 : std::exp(static_cast<double>(scale) * static_cast<double>(of_sink - most));
  std::size_t i = 0;
  while (i + lanes <= count) {
    auto sum = hn::Zero(Floats());
    for (const std::size_t end = std::min(count, i + kOfSum); i + lanes <= end; i += lanes) {
      const auto weight = exponential(Load(scores + i));
      hn::StoreU(weight, Floats(), scores + i);
      sum = hn::Add(sum, weight);
    }
    total += static_cast<double>(Sum(sum));
  }
  if (i == count) return total;
  HWY_ALIGN float rest[kMaxLanes];
  hn::Store(exponential(LoadTail(scores + i, count - i)), Floats(), rest);
  for (std::size_t r = 0; i < count; ++i, ++r) {
    scores[i] = rest[r];
    total += static_cast<double>(rest[r]);
  }
  return total;
}

void ApplySoftmax(float* scores, std::size_t count) {
  const auto factor = hn::Set(Floats(), static_cast<float>(1.0 / ComputeExponentials(scores, count, 1, nullptr)));
  Transform(scores, count, [&](auto weight, std::size_t) HWY_ATTR { return hn::Mul(weight, factor); });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(ComputeExponentials);
HWY_EXPORT(ApplySoftmax);

double compute_exponentials(float* scores, std::size_t count, float scale, const float* sink) {
  return HWY_DYNAMIC_DISPATCH(ComputeExponentials)(scores, count, scale, sink);
}

void apply_softmax(float* scores, std::size_t count) { HWY_DYNAMIC_DISPATCH(ApplySoftmax)(scores, count); }

}  // namespace poise
#endif
