#include "kernels/activation.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

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

HWY_EXPORT(SiluProduct);

}  // namespace

void silu_product(float* gate, const float* up, std::size_t count) { HWY_DYNAMIC_DISPATCH(SiluProduct)(gate, up, count); }

void gelu(float* x, std::size_t count) {
  std::transform(x, x + count, x, [](float number) {
    const auto value = static_cast<double>(number);
    return static_cast<float>(0.5 * value * (1 + std::tanh(0.7978845608028654 * (value + 0.044715 * value * value * value))));
  });
}

}  // namespace poise
#endif
