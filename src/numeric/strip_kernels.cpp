#include "numeric/strip_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/strip_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using StripFloats = hn::CappedTag<float, 16>;
constexpr std::size_t kStripLanes = hn::MaxLanes(StripFloats());
constexpr std::size_t kSumsAtOnce =
    kStrip / kStripLanes < 4 ? kStrip / kStripLanes : 4;  // vectors of a row whose sums are in registers

// Adds the products of one strip. Compiled without contraction, so that each product and sum is rounded.
template <std::size_t kRows>
HWY_INLINE void AddStrip(float* const* out, const float* const* weights, std::size_t rank, const float* strip) {
  const StripFloats floats;
  for (std::size_t from = 0; from < kStrip; from += kSumsAtOnce * kStripLanes) {
    hn::Vec<StripFloats> sums[kRows][kSumsAtOnce];
    for (std::size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kSumsAtOnce; ++v) sums[r][v] = hn::LoadU(floats, out[r] + from + v * kStripLanes);
    }
    for (std::size_t k = 0; k < rank; ++k) {
      hn::Vec<StripFloats> weight[kRows];
      for (std::size_t r = 0; r < kRows; ++r) weight[r] = hn::Set(floats, weights[r][k]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kSumsAtOnce; ++v) {
        const auto numbers = hn::LoadU(floats, strip + k * kStrip + from + v * kStripLanes);
        for (std::size_t r = 0; r < kRows; ++r) sums[r][v] = hn::Add(sums[r][v], hn::Mul(weight[r], numbers));
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kSumsAtOnce; ++v) hn::StoreU(sums[r][v], floats, out[r] + from + v * kStripLanes);
    }
  }
}

template <std::size_t kRows>
void AddStripsOfRows(float* const* out, const float* const* weights, std::size_t rank, const float* strips,
                     std::size_t count) {
  for (std::size_t s = 0; s < count; ++s) {
    float* to[kRows];
    for (std::size_t r = 0; r < kRows; ++r) to[r] = out[r] + s * kStrip;
    AddStrip<kRows>(to, weights, rank, strips + s * rank * kStrip);
  }
}

void AddStrips(float* const* out, const float* const* weights, std::size_t rows, std::size_t rank, const float* strips,
               std::size_t count) {
  if (rows == 2) return AddStripsOfRows<2>(out, weights, rank, strips, count);
  AddStripsOfRows<1>(out, weights, rank, strips, count);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(AddStrips);

void add_strips(float* const* out, const float* const* weights, std::size_t rows, std::size_t rank, const float* strips,
                std::size_t count) {
  HWY_DYNAMIC_DISPATCH(AddStrips)(out, weights, rows, rank, strips, count);
}

}  // namespace poise
#endif
