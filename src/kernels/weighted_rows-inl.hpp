// Weighted sums of rows for several queries at once, whatever the rows are stored as.
#if defined(POISE_KERNELS_WEIGHTED_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_WEIGHTED_ROWS
#undef POISE_KERNELS_WEIGHTED_ROWS
#else
#define POISE_KERNELS_WEIGHTED_ROWS
#endif

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/attention.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Calls f for groups of four queries, then for two and one remaining ones, with their number as a constant.
template <typename F>
HWY_INLINE void ForQueries(std::size_t count, const F& f) {
  static_assert(kQueriesTogether == 4);
  std::size_t q = 0;
  for (; q + 4 <= count; q += 4) f(q, std::integral_constant<std::size_t, 4>());
  if (q + 2 <= count) {
    f(q, std::integral_constant<std::size_t, 2>());
    q += 2;
  }
  if (q < count) f(q, std::integral_constant<std::size_t, 1>());
}

// Rows of float32 numbers. `load` gives a vector of row i from column `at` on, `load_tail` the last numbers of the row,
// padded with zeros.
struct FloatValues {
  const float* data;
  std::size_t stride;

  HWY_INLINE auto load(std::size_t i, std::size_t at) const { return Load(data + i * stride + at); }
  HWY_INLINE auto load_tail(std::size_t i, std::size_t at, std::size_t count) const {
    return LoadTail(data + i * stride + at, count);
  }
};

#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kVectorsTogether = 4;  // of values: 16 sums for 4 queries, of 32 registers
#else
constexpr std::size_t kVectorsTogether = 2;
#endif

// Adds to vectors of each of kCount results; `weights` and `out` belong to the first.
template <std::size_t kCount, std::size_t kVectors, typename Values>
HWY_INLINE void AddToVectors(const FloatRows& weights, const Values& values, std::size_t rows, std::size_t size,
                             std::size_t at, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sums[kCount][kVectors];
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = Load(out + q * size + at + v * lanes);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    hn::Vec<Floats> value[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) value[v] = values.load(i, at + v * lanes);
    HWY_UNROLL(4)
    for (std::size_t q = 0; q < kCount; ++q) {
      const auto weight = hn::Set(Floats(), weights.data[q * weights.stride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = hn::MulAdd(weight, value[v], sums[q][v]);
    }
  }
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[q][v], Floats(), out + q * size + at + v * lanes);
  }
}

// Adds to the last numbers of one result, which do not fill a vector.
template <typename Values>
HWY_INLINE void AddToTail(const float* weights, const Values& values, std::size_t rows, std::size_t count,
                          std::size_t at, float* out) {
  auto sum = LoadTail(out + at, count);
  for (std::size_t i = 0; i < rows; ++i)
    sum = hn::MulAdd(hn::Set(Floats(), weights[i]), values.load_tail(i, at, count), sum);
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(sum, Floats(), buffer);
  std::memcpy(out + at, buffer, sizeof(float) * count);
}

// out[q * size + j] += sum of weights[q][i] * values[i][j] over the rows, in their order.
template <typename Values>
HWY_INLINE void AddWeightedRows(const FloatRows& weights, const Values& values, std::size_t rows, std::size_t size,
                                float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  ForQueries(weights.count, [&](std::size_t q, auto together) HWY_ATTR {
    constexpr std::size_t kVectors = together() == 1 ? 4 : kVectorsTogether;
    const FloatRows weight_rows = {weights.data + q * weights.stride, weights.stride, together()};
    float* const to = out + q * size;
    std::size_t at = 0;
    for (; at + kVectors * lanes <= size; at += kVectors * lanes)
      AddToVectors<together(), kVectors>(weight_rows, values, rows, size, at, to);
    for (; at + lanes <= size; at += lanes) AddToVectors<together(), 1>(weight_rows, values, rows, size, at, to);
    if (at == size) return;
    for (std::size_t i = 0; i < together(); ++i)
      AddToTail(weight_rows.data + i * weight_rows.stride, values, rows, size - at, at, to + i * size);
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
