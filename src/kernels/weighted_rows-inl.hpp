// Computes weighted sums of rows for several queries at once, for any type in which rows are stored.
#if defined(POISE_KERNELS_WEIGHTED_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_WEIGHTED_ROWS
#undef POISE_KERNELS_WEIGHTED_ROWS
#else
#define POISE_KERNELS_WEIGHTED_ROWS
#endif

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <hwy/highway.h>

#include "kernels/cache_type.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3
constexpr bool kManyRegisters = true;  // 32 registers hold 16 sums and their factors
#else
constexpr bool kManyRegisters = false;
#endif

// Calls f(q, n) for groups of n queries that begin with query q. n is a compile-time constant: 8 if there are enough
// registers, then 4, 2 and 1.
template <typename F>
HWY_INLINE void VisitQueries(std::size_t count, const F& f) {
  static_assert(kQueriesTogether == 8);
  std::size_t q = 0;
  if constexpr (kManyRegisters) {
    for (; q + 8 <= count; q += 8) f(q, std::integral_constant<std::size_t, 8>());
  }
  for (; q + 4 <= count; q += 4) f(q, std::integral_constant<std::size_t, 4>());
  if (q + 2 <= count) {
    f(q, std::integral_constant<std::size_t, 2>());
    q += 2;
  }
  if (q < count) f(q, std::integral_constant<std::size_t, 1>());
}

// Prefetches a block step by step while the caller computes with another one. It prefetches into the second-level
// cache, which can wait for more lines at once than the first.
class BlockAhead {
 public:
  BlockAhead() = default;  // prefetches no bytes
  // Requires: `steps` is more than 0, unless `bytes` is 0.
  BlockAhead(const std::byte* block, std::size_t bytes, std::size_t steps)
      : block_(block), step_(bytes == 0 ? 0 : (bytes + steps - 1) / steps) {}

  HWY_INLINE void fetch(std::size_t step) const {
    for (std::size_t i = 0; i < step_; i += kLine) __builtin_prefetch(block_ + step * step_ + i, 0, 2);
  }

 private:
  static constexpr std::size_t kLine = 64;
  const std::byte* block_ = nullptr;
  std::size_t step_ = 0;
};

// Loads rows of float32 numbers. load() returns a vector of row i from column `at` on; load_tail() returns the last
// numbers of the row, padded with zeros.
struct FloatValues {
  const float* data;
  std::size_t stride;

  HWY_INLINE auto load(std::size_t i, std::size_t at) const { return Load(data + i * stride + at); }
  HWY_INLINE auto load_tail(std::size_t i, std::size_t at, std::size_t count) const {
    return LoadTail(data + i * stride + at, count);
  }
};

// Adds the weighted rows to the results of kCount queries: to kVectors vectors from column `at` on. `weights` and `out`
// begin with the first of these queries.
template <std::size_t kCount, std::size_t kVectors, typename Values>
HWY_INLINE void AddToVectors(const FloatRows& weights, const Values& values, std::size_t rows, std::size_t size,
                             std::size_t at, const BlockAhead& ahead, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sums[kCount][kVectors];
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = Load(out + q * size + at + v * lanes);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    hn::Vec<Floats> value[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) value[v] = values.load(i, at + v * lanes);
    ahead.fetch(i);
    HWY_UNROLL(8)
    for (std::size_t q = 0; q < kCount; ++q) {
      const auto weight = hn::Set(Floats(), weights.data[q * weights.stride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = hn::MulAdd(weight, value[v], sums[q][v]);
    }
  }
  for (std::size_t q = 0; q < kCount; ++q) {
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[q][v], Floats(), out + q * size + at + v * lanes);
  }
}

// Adds the weighted rows to the last `count` numbers of one result, which do not fill a vector.
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

// Computes out[q * size + j] += sum over i of weights[q][i] * values[i][j], with the rows in their order. `ahead` has a
// step for each row.
template <typename Values>
HWY_INLINE void AddWeightedRows(const FloatRows& weights, const Values& values, std::size_t rows, std::size_t size,
                                BlockAhead ahead, float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  VisitQueries(weights.count, [&](std::size_t q, auto together) HWY_ATTR {
    constexpr std::size_t kVectors = together() == 1 || (together() == 4 && kManyRegisters) ? 4 : 2;
    const FloatRows weight_rows = {weights.data + q * weights.stride, weights.stride, together()};
    float* const to = out + q * size;
    std::size_t at = 0;
    for (; at + kVectors * lanes <= size; at += kVectors * lanes)
      AddToVectors<together(), kVectors>(weight_rows, values, rows, size, at, std::exchange(ahead, {}), to);
    for (; at + lanes <= size; at += lanes)
      AddToVectors<together(), 1>(weight_rows, values, rows, size, at, std::exchange(ahead, {}), to);
    if (at == size) return;
    for (std::size_t i = 0; i < together(); ++i)
      AddToTail(weight_rows.data + i * weight_rows.stride, values, rows, size - at, at, to + i * size);
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
