// Functions of single numbers, once for each kind of processor.
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

// Applies `f` to vectors of `data`; pads the last one with zeros.
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

// exp(x) for x up to 88; NaN stays NaN. Highway's Exp is undefined for NaN and far outside.
template <typename V>
HWY_INLINE V Exponential(V x) {
  const auto nan = hn::IsNaN(x);
  const auto inside = hn::Max(hn::IfThenZeroElse(nan, x), hn::Set(Floats(), -110.0F));  // exp(-110) is 0 in float32
  return hn::IfThenElse(nan, x, hn::Exp(Floats(), inside));
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
