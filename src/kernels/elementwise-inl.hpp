// Changes each number of an array independently, and computes exp(). Highway compiles this for each kind of processor.
#if defined(POISE_KERNELS_ELEMENTWISE) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_ELEMENTWISE
#undef POISE_KERNELS_ELEMENTWISE
#else
#define POISE_KERNELS_ELEMENTWISE
#endif

#include <cstddef>
#include <cstring>

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Replaces each vector v of `data` with f(v, index of its first number). If the last vector is incomplete, f gets it
// padded with zeros.
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

// Returns exp(x) for x up to 88, also for -infinity; NaN stays NaN. Highway's Exp() allows neither -infinity nor NaN.
template <typename V>
HWY_INLINE V ComputeExponential(V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // exp(x) = 2^n exp(r), where abs(r) is at most log(2) / 2. The polynomial's coefficients minimize the largest
  // relative error, which is 4e-9 without float32's rounding. Max() returns its second argument if either is NaN.
  const auto inside = hn::Max(hn::Set(Floats(), -110.0F), x);  // exp(-110) is 0 in float32
  const auto n = hn::Round(hn::Mul(inside, hn::Set(Floats(), 1.44269504F)));
  const auto upper = hn::NegMulAdd(n, hn::Set(Floats(), 0.693359375F), inside);
  const auto r = hn::NegMulAdd(n, hn::Set(Floats(), -2.12194440e-4F), upper);
  auto power = hn::MulAdd(hn::Set(Floats(), 0.00138146128F), r, hn::Set(Floats(), 0.00836871006F));
  power = hn::MulAdd(power, r, hn::Set(Floats(), 0.0416683890F));
  power = hn::MulAdd(power, r, hn::Set(Floats(), 0.166665211F));
  power = hn::MulAdd(power, r, hn::Set(Floats(), 0.499999940F));
  power = hn::MulAdd(power, r, hn::Set(Floats(), 1.0F));
  power = hn::MulAdd(power, r, hn::Set(Floats(), 1.0F));
  asm("vscalefps %1, %0, %0" : "+v"(power.raw) : "v"(n.raw));
  return power;
#else
  const auto nan = hn::IsNaN(x);
  const auto inside = hn::Max(hn::IfThenZeroElse(nan, x), hn::Set(Floats(), -110.0F));  // exp(-110) is 0 in float32
  return hn::IfThenElse(nan, x, hn::Exp(Floats(), inside));
#endif
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
