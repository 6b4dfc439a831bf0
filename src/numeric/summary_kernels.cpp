#include "numeric/summary_kernels.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/summary_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"

// The vector loops for float16 need AVX2. On other targets, float16 is converted one number at a time.
#undef POISE_HAS_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define POISE_HAS_F16 1
#else
#define POISE_HAS_F16 0
#endif

#ifndef POISE_FLOAT_SUMS
#define POISE_FLOAT_SUMS
namespace poise {

inline constexpr std::size_t kPrefetchedBytes = 1024;  // how far ahead the loop prefetches

// Holds sums over finite numbers.
struct FloatSums {
  std::uint64_t count = 0;
  double distances = 0;  // the sum of the distances from the center
  double squares = 0;    // the sum of the squares of the distances
};

// Holds the sum of the squares of the first `count` numbers of an array.
struct SquareSum {
  std::size_t count = 0;
  float squares = 0;
};

// Adds one number to the summary and, if it is finite, to the sums. Does not collect it as a far number.
inline void add_number(float number, float smallest_normal, FarNumbers& far, Summary& summary, FloatSums& sums) {
  if (std::isnan(number)) {
    ++summary.nans;
    return;
  }
  if (std::isinf(number)) {
    ++summary.infinities;
    return;
  }
  if (number == 0) ++summary.zeros;
  if (number != 0 && std::abs(number) < smallest_normal) ++summary.subnormals;
  summary.min = std::min(summary.min, static_cast<double>(number));
  summary.max = std::max(summary.max, static_cast<double>(number));
  const double distance = static_cast<double>(number) - static_cast<double>(far.center);
  ++sums.count;
  sums.distances += distance;
  sums.squares += distance * distance;
}

// Collects the far numbers (FarNumbers) among `numbers`, and includes them in the extremes. Returns false if a number
// is not finite.
inline bool collect_far(std::span<const float> numbers, FarNumbers& far, Summary& summary) {
  bool are_finite = true;
  for (const float number : numbers) {
    if (!std::isfinite(number)) {
      are_finite = false;
    } else if (!(std::abs(number - far.center) <= far.reach)) {
      summary.min = std::min(summary.min, static_cast<double>(number));
      summary.max = std::max(summary.max, static_cast<double>(number));
      (number < far.center ? far.has_low : far.has_high) = true;
      if (far.numbers.size() < far.most) {
        far.numbers.push_back(number);
      } else {
        far.is_complete = false;
      }
    }
  }
  return are_finite;
}

}  // namespace poise
#endif

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
const hn::ScalableTag<double> kDoubles;
using FloatTag = decltype(kFloats);
using FloatVec = hn::Vec<FloatTag>;
using DoubleVec = hn::Vec<decltype(kDoubles)>;
const hn::RebindToSigned<FloatTag> kWords;
const hn::Rebind<std::uint16_t, FloatTag> kSixteenBits;

// A step reads two vectors of float32, which become four of float64. Six vectors of float64 hold the sums; larger
// steps would need more registers than there are.
constexpr std::size_t kMostInStep = 2 * hn::MaxLanes(FloatTag());

// Each of these structs loads a vector of stored numbers as float32.
struct StoredF32 {
  static constexpr std::size_t kBytes = 4;
  static HWY_INLINE FloatVec Load(const std::byte* in) {
    return hn::LoadU(kFloats, reinterpret_cast<const float*>(in));
  }
};
struct StoredBf16 {
  static constexpr std::size_t kBytes = 2;
  static HWY_INLINE FloatVec Load(const std::byte* in) {
    const auto halves = hn::LoadU(kSixteenBits, reinterpret_cast<const std::uint16_t*>(in));
    return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(kWords, halves)));
  }
};
#if POISE_HAS_F16
struct StoredF16 {
  static constexpr std::size_t kBytes = 2;
  static HWY_INLINE FloatVec Load(const std::byte* in) {
    const auto halves = hn::LoadU(kSixteenBits, reinterpret_cast<const std::uint16_t*>(in));
    return hn::PromoteTo(kFloats, hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), halves));
  }
};
#endif

HWY_INLINE DoubleVec WidenLower(FloatVec numbers) {
#if HWY_TARGET == HWY_SCALAR
  return hn::PromoteTo(kDoubles, numbers);
#else
  return hn::PromoteTo(kDoubles, hn::LowerHalf(numbers));
#endif
}
// Widens the upper half. A vector of one lane has none.
HWY_INLINE DoubleVec WidenUpper(FloatVec numbers) {
#if HWY_TARGET == HWY_SCALAR
  (void)numbers;
  return hn::Zero(kDoubles);
#else
  return hn::PromoteTo(kDoubles, hn::UpperHalf(hn::Half<FloatTag>(), numbers));
#endif
}

HWY_INLINE double AddUp(DoubleVec sums) { return hn::GetLane(hn::SumOfLanes(kDoubles, sums)); }

// Adds the numbers of all whole steps, and returns the count of these numbers. With kCentered, distances are from
// far.center, else from 0. With kHasExtremes, the piece already has far numbers on both sides, so that no near number
// is an extreme. Most steps need a single test: that no magnitude is below the smallest normal number, and no distance
// beyond the reach.
template <typename StoredType, bool kCentered, bool kHasExtremes>
HWY_INLINE std::size_t AddSteps(const std::byte* in, std::size_t count, float smallest_normal, FarNumbers& far,
                                Summary& summary, FloatSums& total) {
  const auto center = hn::Set(kFloats, far.center);
  const auto wide_center = hn::Set(kDoubles, static_cast<double>(far.center));
  // This is above 0 even if `smallest_normal` is 0, so that count_small() gets every zero.
  const auto normal = hn::Set(kFloats, std::max(smallest_normal, std::numeric_limits<float>::denorm_min()));
  const auto reach = hn::Set(kFloats, far.is_complete ? far.reach : std::numeric_limits<float>::max());
  auto least = hn::Set(kFloats, std::numeric_limits<float>::infinity());
  auto most = hn::Set(kFloats, -std::numeric_limits<float>::infinity());
  auto zeros = hn::Zero(kWords);
  auto below_normal = hn::Zero(kWords);
  auto sum0 = hn::Zero(kDoubles), sum1 = sum0;
  auto squares0 = sum0, squares1 = sum0, squares2 = sum0, squares3 = sum0;
  const auto count_small = [&](FloatVec numbers) HWY_ATTR {
    const auto is_zero = hn::RebindMask(kWords, hn::Eq(numbers, hn::Zero(kFloats)));
    const auto is_below = hn::RebindMask(kWords, hn::Lt(hn::Abs(numbers), normal));
    zeros = hn::Sub(zeros, hn::VecFromMask(kWords, is_zero));
    below_normal = hn::Sub(below_normal, hn::VecFromMask(kWords, is_below));
  };
  const std::size_t lanes = hn::Lanes(kFloats);
  const std::size_t step = 2 * lanes;
  std::size_t skipped = 0;
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto first = StoredType::Load(in + i * StoredType::kBytes);
    const auto second = StoredType::Load(in + (i + lanes) * StoredType::kBytes);
    hwy::Prefetch(in + i * StoredType::kBytes + kPrefetchedBytes);
    const auto magnitude0 = hn::Abs(first);
    const auto magnitude1 = hn::Abs(second);
    const auto are_near = hn::And(hn::Le(kCentered ? hn::Abs(hn::Sub(first, center)) : magnitude0, reach),
                                  hn::Le(kCentered ? hn::Abs(hn::Sub(second, center)) : magnitude1, reach));
    const auto is_plain = hn::And(are_near, hn::Ge(hn::Min(magnitude0, magnitude1), normal));
    if (HWY_UNLIKELY(!hn::AllTrue(kFloats, is_plain))) {
      if (!hn::AllTrue(kFloats, are_near)) {
        float numbers[kMostInStep];
        hn::StoreU(first, kFloats, numbers);
        hn::StoreU(second, kFloats, numbers + lanes);
        const std::span<const float> all(numbers, step);
        if (!collect_far(all, far, summary)) {
          for (const float number : all) add_number(number, smallest_normal, far, summary, total);
          skipped += step;
          continue;
        }
      }
      count_small(first);
      count_small(second);
    }
    if (!kHasExtremes) {
      least = hn::Min(least, hn::Min(first, second));
      most = hn::Max(most, hn::Max(first, second));
    }
    const auto shifted = [&](DoubleVec numbers)
                             HWY_ATTR { return kCentered ? hn::Sub(numbers, wide_center) : numbers; };
    const auto distance0 = shifted(WidenLower(first));
    squares0 = hn::MulAdd(distance0, distance0, squares0);
    const auto distance2 = shifted(WidenLower(second));
    squares2 = hn::MulAdd(distance2, distance2, squares2);
    if (hn::MaxLanes(FloatTag()) == 1) {
      sum0 = hn::Add(sum0, hn::Add(distance0, distance2));
      continue;
    }
    const auto distance1 = shifted(WidenUpper(first));
    squares1 = hn::MulAdd(distance1, distance1, squares1);
    sum0 = hn::Add(sum0, hn::Add(distance0, distance1));
    const auto distance3 = shifted(WidenUpper(second));
    squares3 = hn::MulAdd(distance3, distance3, squares3);
    sum1 = hn::Add(sum1, hn::Add(distance2, distance3));
  }
  total.count += i - skipped;
  total.distances += AddUp(hn::Add(sum0, sum1));
  total.squares += AddUp(hn::Add(hn::Add(squares0, squares1), hn::Add(squares2, squares3)));
  summary.min = std::min(summary.min, static_cast<double>(hn::GetLane(hn::MinOfLanes(kFloats, least))));
  summary.max = std::max(summary.max, static_cast<double>(hn::GetLane(hn::MaxOfLanes(kFloats, most))));
  const auto zero_count = static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(kWords, zeros)));
  summary.zeros += zero_count;
  summary.subnormals += static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(kWords, below_normal))) - zero_count;
  return i;
}

template <typename StoredType>
HWY_INLINE std::size_t AddStored(const std::byte* in, std::size_t count, float smallest_normal, FarNumbers& far,
                                 Summary& summary, FloatSums& total) {
  return far.has_low && far.has_high && far.is_complete
             ? AddSteps<StoredType, false, true>(in, count, smallest_normal, far, summary, total)
             : AddSteps<StoredType, false, false>(in, count, smallest_normal, far, summary, total);
}

std::size_t SummarizeF32(const std::byte* in, std::size_t count, float smallest_normal, FarNumbers& far,
                         Summary& summary, FloatSums& total) {
  if (far.center != 0) return AddSteps<StoredF32, true, false>(in, count, smallest_normal, far, summary, total);
  return AddStored<StoredF32>(in, count, smallest_normal, far, summary, total);
}

std::size_t SummarizeBf16(const std::byte* in, std::size_t count, float smallest_normal, FarNumbers& far,
                          Summary& summary, FloatSums& total) {
  return AddStored<StoredBf16>(in, count, smallest_normal, far, summary, total);
}

std::size_t SummarizeF16(const std::byte* in, std::size_t count, float smallest_normal, FarNumbers& far,
                         Summary& summary, FloatSums& total) {
#if POISE_HAS_F16
  return AddStored<StoredF16>(in, count, smallest_normal, far, summary, total);
#else
  (void)in, (void)count, (void)smallest_normal, (void)far, (void)summary, (void)total;
  return 0;
#endif
}

// Returns the sum of the squares of the numbers in all whole steps (two vectors), and the count of these numbers.
template <typename StoredType>
HWY_INLINE SquareSum SumSquares(const std::byte* in, std::size_t count) {
  FloatVec sum0 = hn::Zero(kFloats);
  FloatVec sum1 = sum0;
  const std::size_t lanes = hn::Lanes(kFloats);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const FloatVec first = StoredType::Load(in + i * StoredType::kBytes);
    const FloatVec second = StoredType::Load(in + (i + lanes) * StoredType::kBytes);
    sum0 = hn::MulAdd(first, first, sum0);
    sum1 = hn::MulAdd(second, second, sum1);
  }
  return {i, hn::GetLane(hn::SumOfLanes(kFloats, hn::Add(sum0, sum1)))};
}

SquareSum SumSquaresF32(const std::byte* in, std::size_t count) { return SumSquares<StoredF32>(in, count); }
SquareSum SumSquaresBf16(const std::byte* in, std::size_t count) { return SumSquares<StoredBf16>(in, count); }
SquareSum SumSquaresF16(const std::byte* in, std::size_t count) {
#if POISE_HAS_F16
  return SumSquares<StoredF16>(in, count);
#else
  (void)in, (void)count;
  return {};
#endif
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(SummarizeF32);
HWY_EXPORT(SummarizeBf16);
HWY_EXPORT(SummarizeF16);
HWY_EXPORT(SumSquaresF32);
HWY_EXPORT(SumSquaresBf16);
HWY_EXPORT(SumSquaresF16);

}  // namespace

namespace {

// Adds the numbers that the vector loops left over, then computes the moments.
Summary finish_summary(std::span<const float> rest, float smallest_normal, FarNumbers& far, Summary summary,
                       FloatSums sums) {
  collect_far(rest, far, summary);
  for (const float number : rest) add_number(number, smallest_normal, far, summary, sums);
  if (sums.count == 0) return summary;
  const auto count = static_cast<double>(sums.count);
  summary.moments = {sums.count, static_cast<double>(far.center) + sums.distances / count,
                     std::max(0.0, sums.squares - sums.distances * (sums.distances / count))};
  return summary;
}

}  // namespace

Summary summarize(std::span<const float> numbers, float smallest_normal, FarNumbers& far) {
  Summary summary;
  FloatSums sums;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(SummarizeF32)(std::as_bytes(numbers).data(), numbers.size(),
                                                              smallest_normal, far, summary, sums);
  return finish_summary(numbers.subspan(done), smallest_normal, far, summary, sums);
}

std::optional<Summary> summarize_stored_numbers(DType dtype, std::span<const std::byte> numbers, float smallest_normal,
                                                FarNumbers& far) {
  if (far.center != 0 || (dtype != DType::f16 && dtype != DType::bf16)) return std::nullopt;
  Summary summary;
  FloatSums sums;
  const std::size_t count = numbers.size() / 2;
  const std::size_t done =
      dtype == DType::f16
          ? HWY_DYNAMIC_DISPATCH(SummarizeF16)(numbers.data(), count, smallest_normal, far, summary, sums)
          : HWY_DYNAMIC_DISPATCH(SummarizeBf16)(numbers.data(), count, smallest_normal, far, summary, sums);
  std::vector<float> rest(count - done);
  for (std::size_t i = 0; i < rest.size(); ++i)
    rest[i] = decode_float(dtype, load_le<std::uint16_t>(numbers.data() + 2 * (done + i)));
  return finish_summary(rest, smallest_normal, far, summary, sums);
}

namespace {

// Returns the sum of the squares of `count` numbers. Continues the float32 sum `begun`, or starts again in float64 if
// that sum may have overflowed or underflowed. number_at(i) returns number i as float64.
template <typename NumberAt>
double finish_squares(const SquareSum& begun, std::size_t count, const NumberAt& number_at) {
  constexpr float kSmall = 1e-30F;
  const bool is_usual = begun.count > 0 && begun.squares > kSmall && std::isfinite(begun.squares);
  double sum = is_usual ? static_cast<double>(begun.squares) : 0;
  for (std::size_t i = is_usual ? begun.count : 0; i < count; ++i) {
    const double number = number_at(i);
    sum += std::isfinite(number) ? number * number : NAN;
  }
  return sum;
}

}  // namespace

double sum_squares(std::span<const float> numbers) {
  const SquareSum begun = HWY_DYNAMIC_DISPATCH(SumSquaresF32)(std::as_bytes(numbers).data(), numbers.size());
  return finish_squares(begun, numbers.size(), [&](std::size_t i) { return static_cast<double>(numbers[i]); });
}

double sum_stored_squares(DType dtype, std::span<const std::byte> numbers) {
  const std::size_t count = numbers.size() / 2;
  const SquareSum begun = dtype == DType::f16 ? HWY_DYNAMIC_DISPATCH(SumSquaresF16)(numbers.data(), count)
                                              : HWY_DYNAMIC_DISPATCH(SumSquaresBf16)(numbers.data(), count);
  return finish_squares(begun, count, [&](std::size_t i) {
    return static_cast<double>(decode_float(dtype, load_le<std::uint16_t>(numbers.data() + 2 * i)));
  });
}

LargestRow find_largest_row(std::span<const float> rows, std::size_t length) {
  LargestRow largest;
  for (std::size_t row = 0; row < rows.size() / length; ++row) {
    double squares = 0;
    std::size_t count = 0;
    for (const float number : rows.subspan(row * length, length)) {
      if (!std::isfinite(number)) continue;
      squares += static_cast<double>(number) * static_cast<double>(number);
      ++count;
    }
    if (count == 0) continue;
    const double mean = squares / static_cast<double>(count);
    if (std::isnan(largest.rms) || mean > largest.rms) largest = {row, mean};
  }
  largest.rms = std::sqrt(largest.rms);
  return largest;
}

std::uint64_t count_outside(std::span<const float> numbers, double low, double high) {
  std::uint64_t count = 0;
  for (const float number : numbers) {
    const auto wide = static_cast<double>(number);
    const bool is_outside = (wide < low || wide > high) && std::abs(number) <= std::numeric_limits<float>::max();
    count += is_outside ? 1U : 0U;
  }
  return count;
}

bool is_small_integer(DType dtype) { return dtype == DType::boolean || (is_integer(dtype) && info(dtype).bits <= 16); }

namespace {

template <typename Number>
void convert_each(DType dtype, const std::byte* in, std::span<Number> out) {
  visit_integer(dtype == DType::boolean ? DType::u8 : dtype, [&](auto zero) {
    using Integer = decltype(zero);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<Number>(load_le<Integer>(in + i * sizeof(Integer)));
  });
}

}  // namespace

void convert_integers(DType dtype, const std::byte* in, std::span<float> out) { convert_each(dtype, in, out); }
void convert_integers(DType dtype, const std::byte* in, std::span<double> out) { convert_each(dtype, in, out); }

}  // namespace poise
#endif
