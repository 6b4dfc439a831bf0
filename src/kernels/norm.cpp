#include "kernels/activation.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using FloatsOfDoubles = hn::Rebind<float, Doubles>;

// Returns the sum of term(x[i]) in float64.
template <class Term>
HWY_INLINE double SumTerms(const float* x, std::size_t count, const Term& term) {
  const std::size_t lanes = hn::Lanes(Doubles());
  // Four independent sums hide the latency of Add(). An array cannot hold vectors of SVE.
  auto a = hn::Zero(Doubles());
  auto b = a, c = a, d = a;
  const auto number = [&](std::size_t i)
                          HWY_ATTR { return hn::PromoteTo(Doubles(), hn::LoadU(FloatsOfDoubles(), x + i)); };
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, term(number(i)));
    b = hn::Add(b, term(number(i + lanes)));
    c = hn::Add(c, term(number(i + 2 * lanes)));
    d = hn::Add(d, term(number(i + 3 * lanes)));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, term(number(i)));
  double sum = hn::GetLane(hn::SumOfLanes(Doubles(), hn::Add(hn::Add(a, b), hn::Add(c, d))));
  for (; i < count; ++i) sum += hn::GetLane(term(hn::Set(Doubles(), static_cast<double>(x[i]))));
  return sum;
}

void ComputeRmsNorm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out) {
  const std::size_t size = weight.size();
  for (std::size_t t = 0; t < tokens; ++t, x += size, out += size) {
    const double squares = SumTerms(x, size, [](auto number) HWY_ATTR { return hn::Mul(number, number); });
    const auto factor =
        static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(eps)));
    for (std::size_t i = 0; i < size; ++i) out[i] = x[i] * factor * weight[i];
  }
}

void ComputeLayerNorm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                      float eps, float* out) {
  const std::size_t size = weight.size();
  for (std::size_t t = 0; t < tokens; ++t, x += size, out += size) {
    const double mean = SumTerms(x, size, [](auto number) HWY_ATTR { return number; }) / static_cast<double>(size);
    const auto mean_of_all = hn::Set(Doubles(), mean);
    const double squares = SumTerms(x, size, [&](auto number) HWY_ATTR {
      const auto deviation = hn::Sub(number, mean_of_all);
      return hn::Mul(deviation, deviation);
    });
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(eps));
    for (std::size_t i = 0; i < size; ++i)
      out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * factor) * weight[i] + bias[i];
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(ComputeRmsNorm);
HWY_EXPORT(ComputeLayerNorm);

void compute_rms_norm(const float* x, std::size_t tokens, std::span<const float> weight, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(ComputeRmsNorm)(x, tokens, weight, eps, out);
}

void compute_layer_norm(const float* x, std::size_t tokens, std::span<const float> weight, std::span<const float> bias,
                        float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(ComputeLayerNorm)(x, tokens, weight, bias, eps, out);
}

}  // namespace poise
#endif
