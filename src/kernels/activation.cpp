#include "kernels/activation.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Returns x / (1 + exp(-gain * x)).
template <typename V>
HWY_INLINE V ComputeSwish(V x, float gain) {
  const auto most = hn::Set(Floats(), 88.0F);  // x / exp(88) is practically zero
  const auto exponential = ComputeExponential(hn::Min(hn::Mul(x, hn::Set(Floats(), -gain)), most));
  return hn::Div(x, hn::Add(hn::Set(Floats(), 1.0F), exponential));
}

// Returns tanh(x); NaN stays NaN.
template <typename V>
HWY_INLINE V ComputeTanh(V x) {
  const auto nan = hn::IsNaN(x);
  const auto most = hn::Set(Floats(), 20.0F);  // tanh(20) is 1 in float32
  const auto inside = hn::Max(hn::Min(hn::IfThenZeroElse(nan, x), most), hn::Neg(most));
  return hn::IfThenElse(nan, x, hn::Tanh(Floats(), inside));
}

template <typename V>
HWY_INLINE V ComputeGeluTanh(V x) {
  const auto cube = hn::Mul(hn::Mul(x, x), x);
  const auto inner = hn::Mul(hn::Set(Floats(), 0.7978845608028654F), hn::MulAdd(hn::Set(Floats(), 0.044715F), cube, x));
  return hn::Mul(hn::Mul(hn::Set(Floats(), 0.5F), x), hn::Add(hn::Set(Floats(), 1.0F), ComputeTanh(inner)));
}

// Loads a vector from other + i; `other` has `count` numbers. Pads the last vector with zeros.
HWY_INLINE hn::Vec<Floats> LoadOther(const float* other, std::size_t i, std::size_t count) {
  return i + hn::Lanes(Floats()) <= count ? Load(other + i) : LoadTail(other + i, count - i);
}

void ApplySilu(float* x, std::size_t count) {
  Transform(x, count, [](auto number, std::size_t) HWY_ATTR { return ComputeSwish(number, 1.0F); });
}

void GateWithSilu(float* gate, const float* up, std::size_t count) {
  Transform(gate, count,
            [&](auto x, std::size_t i) HWY_ATTR { return hn::Mul(ComputeSwish(x, 1.0F), LoadOther(up, i, count)); });
}

void ApplyGeluTanh(float* x, std::size_t count) {
  Transform(x, count, [](auto number, std::size_t) HWY_ATTR { return ComputeGeluTanh(number); });
}

void GateWithGeluTanh(float* gate, const float* up, std::size_t count) {
  Transform(gate, count,
            [&](auto x, std::size_t i) HWY_ATTR { return hn::Mul(ComputeGeluTanh(x), LoadOther(up, i, count)); });
}

void ApplyClampedSwiglu(float* gate, const float* up, std::size_t count) {
  const auto most = hn::Set(Floats(), kClampedLimit);
  Transform(gate, count, [&](auto x, std::size_t i) HWY_ATTR {
    // NaN stays NaN, because comparisons with NaN are false.
    const auto up_to_most = [&](auto number) HWY_ATTR { return hn::IfThenElse(hn::Gt(number, most), most, number); };
    const auto clamped = up_to_most(LoadOther(up, i, count));
    const auto other = hn::IfThenElse(hn::Lt(clamped, hn::Neg(most)), hn::Neg(most), clamped);
    return hn::Mul(ComputeSwish(up_to_most(x), kClampedGain), hn::Add(other, hn::Set(Floats(), 1.0F)));
  });
}

void ApplySoftCap(float* x, std::size_t count, float cap) {
  const auto to = hn::Set(Floats(), cap);
  const auto from = hn::Set(Floats(), 1.0F / cap);
  Transform(x, count,
            [&](auto number, std::size_t) HWY_ATTR { return hn::Mul(to, ComputeTanh(hn::Mul(number, from))); });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(ApplySilu);
HWY_EXPORT(GateWithSilu);
HWY_EXPORT(ApplyGeluTanh);
HWY_EXPORT(GateWithGeluTanh);
HWY_EXPORT(ApplyClampedSwiglu);
HWY_EXPORT(ApplySoftCap);

float compute_gelu(float x) { return 0.5F * x * (1.0F + std::erf(x * 0.70710678118654752F)); }
float compute_relu(float x) { return x < 0.0F ? 0.0F : x; }

}  // namespace

void apply_silu(float* x, std::size_t count) { HWY_DYNAMIC_DISPATCH(ApplySilu)(x, count); }
void gate_with_silu(float* gate, const float* up, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(GateWithSilu)(gate, up, count);
}
void apply_gelu_tanh(float* x, std::size_t count) { HWY_DYNAMIC_DISPATCH(ApplyGeluTanh)(x, count); }
void gate_with_gelu_tanh(float* gate, const float* up, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(GateWithGeluTanh)(gate, up, count);
}
void apply_clamped_swiglu(float* gate, const float* up, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ApplyClampedSwiglu)(gate, up, count);
}
void apply_soft_cap(float* x, std::size_t count, float cap) { HWY_DYNAMIC_DISPATCH(ApplySoftCap)(x, count, cap); }

void apply_gelu(float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = compute_gelu(x[i]);
}
void gate_with_gelu(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) gate[i] = compute_gelu(gate[i]) * up[i];
}
void apply_relu(float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = compute_relu(x[i]);
}
void gate_with_relu(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) gate[i] = compute_relu(gate[i]) * up[i];
}

}  // namespace poise
#endif
