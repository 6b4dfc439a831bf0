#include "kernels/cache_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weighted_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/weighted_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

void AddFloatRows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  AddWeightedRows(weights, FloatValues{values.data, values.stride}, values.count, size, {}, out);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(AddFloatRows);

void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(AddFloatRows)(weights, values, size, out);
}

}  // namespace poise
#endif
