// Rounds a step of x (columns that share a scale) to integers. Highway compiles this for each kind of processor.
#if defined(POISE_KERNELS_ROUND_STEP) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_ROUND_STEP
#undef POISE_KERNELS_ROUND_STEP
#else
#define POISE_KERNELS_ROUND_STEP
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <hwy/highway.h>

#include "kernels/code_panel.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

constexpr float kLeastScaled = 1e-30F;        // smaller magnitudes count as 0
constexpr std::int32_t kLargestWord = 32639;  // the largest 256 * upper + lower of two signed bytes

// A vector has at most sixteen lanes. A step is a multiple of sixteen columns, so it fills whole vectors.
using StepFloats = hn::CappedTag<float, 16>;

// Holds the scale of a step, and the sums of its first sixteen integers and of all.
struct RoundedStep {
  float scale;
  std::int32_t first;
  std::int32_t sum;
};

// Returns the largest magnitude of `count` numbers that load(i) returns, a vector at a time. NaN counts as larger than
// infinity.
template <class Load>
HWY_INLINE float FindLargest(const Load& load, std::size_t count) {
  const StepFloats floats;
  const hn::RebindToUnsigned<StepFloats> bits;
  auto most = hn::Zero(bits);
  for (std::size_t i = 0; i < count; i += hn::Lanes(floats))
    most = hn::Max(most, hn::And(hn::BitCast(bits, load(i)), hn::Set(bits, 0x7fffffffU)));
  const std::uint32_t most_bits = hn::GetLane(hn::MaxOfLanes(bits, most));
  float largest = 0;
  std::memcpy(&largest, &most_bits, sizeof largest);
  return largest;
}

// Returns true if numbers with this largest magnitude can be scaled to integers. Returns false if all are practically
// 0, or if one is not finite.
HWY_INLINE bool HasScale(float largest) {
  return largest >= kLeastScaled && largest <= std::numeric_limits<float>::max();
}
// Returns the scale of numbers for which HasScale() is false; their integers are 0.
HWY_INLINE float GetZeroOrNanScale(float largest) {
  return largest < kLeastScaled ? 0 : std::numeric_limits<float>::quiet_NaN();
}

// Rounds `count` numbers to integers from -kLargest to kLargest. `count` is a multiple of sixteen.
template <std::int32_t kLargest, class Load>
HWY_INLINE RoundedStep RoundStepTo16Bits(const Load& load, std::size_t count, std::int16_t* to) {
  const StepFloats floats;
  const hn::RebindToSigned<StepFloats> integers;
  const hn::Rebind<std::int16_t, StepFloats> words;
  const float largest = FindLargest(load, count);
  if (!HasScale(largest)) {
    std::fill_n(to, count, std::int16_t{0});
    return {GetZeroOrNanScale(largest), 0, 0};
  }
  const auto factor = hn::Set(floats, kLargest / largest);
  auto first = hn::Zero(integers);
  auto rest = first;
  for (std::size_t i = 0; i < count; i += hn::Lanes(floats)) {
    const auto numbers = hn::NearestInt(hn::Mul(load(i), factor));
    auto& sum = i < 16 ? first : rest;
    sum = hn::Add(sum, numbers);
    hn::StoreU(hn::DemoteTo(words, numbers), words, to + i);
  }
  const std::int32_t sum_of_first = hn::GetLane(hn::SumOfLanes(integers, first));
  return {largest / kLargest, sum_of_first, sum_of_first + hn::GetLane(hn::SumOfLanes(integers, rest))};
}

#if HWY_TARGET <= HWY_AVX3

// Stores a step of the integers of four rows or tokens, in which pairs of columns are `pair_bytes` apart.
HWY_INLINE void StorePairs(const std::int16_t (&integers)[4][kMostRoundedStep], std::size_t step, std::uint8_t* to,
                           std::size_t pair_bytes) {
  const hn::FixedTag<std::uint32_t, 16> pairs;
  const hn::Repartition<std::uint64_t, decltype(pairs)> wide;
  const auto load = [&](std::size_t row, std::size_t i) HWY_ATTR {
    return hn::LoadU(pairs, reinterpret_cast<const std::uint32_t*>(integers[row] + i));
  };
  for (std::size_t i = 0; i < step; i += 32) {
    const auto a = load(0, i);
    const auto b = load(1, i);
    const auto c = load(2, i);
    const auto d = load(3, i);
    const auto low_ab = hn::BitCast(wide, hn::InterleaveLower(pairs, a, b));
    const auto low_cd = hn::BitCast(wide, hn::InterleaveLower(pairs, c, d));
    const auto high_ab = hn::BitCast(wide, hn::InterleaveUpper(pairs, a, b));
    const auto high_cd = hn::BitCast(wide, hn::InterleaveUpper(pairs, c, d));
    // InterleaveLower() and InterleaveUpper() work on 128 bits at a time, so ordered[n] has the pairs of columns n,
    // n + 4, n + 8 and n + 12, and of each pair the four rows in turn.
    alignas(64) std::uint8_t ordered[4][64];
    hn::Store(hn::BitCast(pairs, hn::InterleaveLower(wide, low_ab, low_cd)), pairs,
              reinterpret_cast<std::uint32_t*>(ordered[0]));
    hn::Store(hn::BitCast(pairs, hn::InterleaveUpper(wide, low_ab, low_cd)), pairs,
              reinterpret_cast<std::uint32_t*>(ordered[1]));
    hn::Store(hn::BitCast(pairs, hn::InterleaveLower(wide, high_ab, high_cd)), pairs,
              reinterpret_cast<std::uint32_t*>(ordered[2]));
    hn::Store(hn::BitCast(pairs, hn::InterleaveUpper(wide, high_ab, high_cd)), pairs,
              reinterpret_cast<std::uint32_t*>(ordered[3]));
    const std::size_t count = std::min<std::size_t>(16, (step - i) / 2);
    for (std::size_t p = 0; p < count; ++p) std::memcpy(to + (i / 2 + p) * pair_bytes, ordered[p % 4] + p / 4 * 16, 16);
  }
}

#endif

// Rounds `count` numbers, a multiple of sixteen, to integers of 7 bits and a sign in `lower`, or (kWords) of 15 bits
// and a sign, stored as 256 * upper + lower.
template <bool kWords>
HWY_INLINE RoundedStep RoundStep(const float* x, std::size_t count, std::int8_t* upper, std::int8_t* lower) {
  const StepFloats floats;
  const hn::RebindToSigned<StepFloats> integers;
  const hn::Rebind<std::int16_t, StepFloats> words;
  const hn::Rebind<std::int8_t, StepFloats> bytes;
  constexpr float kLargest = kWords ? kLargestWord : 127;
  const std::size_t lanes = hn::Lanes(floats);
  const float largest = FindLargest([&](std::size_t i) HWY_ATTR { return hn::LoadU(floats, x + i); }, count);
  if (!HasScale(largest)) {
    if (kWords) std::fill_n(upper, count, std::int8_t{0});
    std::fill_n(lower, count, std::int8_t{0});
    return {GetZeroOrNanScale(largest), 0, 0};
  }
  const auto factor = hn::Set(floats, kLargest / largest);
  auto first = hn::Zero(integers);
  auto rest = first;
  const auto store = [&](auto numbers, std::int8_t* to)
                         HWY_ATTR { hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(words, numbers)), bytes, to); };
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto numbers = hn::NearestInt(hn::Mul(hn::LoadU(floats, x + i), factor));
    auto& sum = i < 16 ? first : rest;
    sum = hn::Add(sum, numbers);
    if constexpr (kWords) {
      const auto high = hn::ShiftRight<8>(hn::Add(numbers, hn::Set(integers, 128)));
      store(high, upper + i);
      store(hn::Sub(numbers, hn::ShiftLeft<8>(high)), lower + i);
    } else {
      store(numbers, lower + i);
    }
  }
  const std::int32_t sum_of_first = hn::GetLane(hn::SumOfLanes(integers, first));
  return {largest / kLargest, sum_of_first, sum_of_first + hn::GetLane(hn::SumOfLanes(integers, rest))};
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
