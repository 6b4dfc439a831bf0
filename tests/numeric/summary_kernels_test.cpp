// Expected numbers are worked out by hand, or by NumPy 1.24 with float128 where a comment names it.
// tests/ops/statistics_against_numpy.py compares whole tensors.
#include "numeric/summary_kernels.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

// Returns 40 numbers: a step of any processor, and a tail.
std::vector<float> make_numbers() {
  std::vector<float> numbers(40);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 20;
  return numbers;
}

std::vector<std::byte> make_bf16(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(number) >> 16;
    bytes.push_back(static_cast<std::byte>(bits & 255));
    bytes.push_back(static_cast<std::byte>(bits >> 8));
  }
  return bytes;
}

TEST(Summary, OfFloatsAroundAnyCenter) {
  for (const float center : {0.0F, -0.5F, 1000.0F}) {
    FarNumbers far{.center = center};
    const Summary summary = summarize(make_numbers(), kSmallestNormal, far);
    EXPECT_EQ(summary.moments.count, 40U);
    EXPECT_DOUBLE_EQ(summary.moments.find_mean(), -0.5);
    EXPECT_DOUBLE_EQ(summary.moments.find_deviation(), std::sqrt((40.0 * 40 - 1) / 12));
    EXPECT_EQ(summary.min, -20);
    EXPECT_EQ(summary.max, 19);
    EXPECT_EQ(summary.zeros, 1U);
    EXPECT_EQ(summary.subnormals, 0U);
  }
}

// Special numbers stand at every place of a step, and after the last step.
TEST(Summary, CountsSpecialNumbersAtEveryPlace) {
  for (std::size_t i = 0; i < 40; ++i) {
    for (const bool is_stored : {false, true}) {
      std::vector<float> numbers(40, 1);
      const auto summary_of = [&](float number) {
        numbers[i] = number;
        FarNumbers far{.reach = 4, .most = 1};
        return is_stored ? summarize_stored_numbers(DType::bf16, make_bf16(numbers), kSmallestNormal, far).value()
                         : summarize(numbers, kSmallestNormal, far);
      };
      EXPECT_EQ(summary_of(kNan).nans, 1U) << i;
      EXPECT_EQ(summary_of(kNan).moments.count, 39U) << i;
      EXPECT_EQ(summary_of(kNan).max, 1) << i;
      EXPECT_EQ(summary_of(-kInfinity).infinities, 1U) << i;
      EXPECT_EQ(summary_of(-kInfinity).min, 1) << i;
      EXPECT_EQ(summary_of(-0.0F).zeros, 1U) << i;
      EXPECT_EQ(summary_of(0x1p-130F).subnormals, 1U) << i;
      EXPECT_EQ(summary_of(0x1p-130F).zeros, 0U) << i;
      EXPECT_EQ(summary_of(64).max, 64) << i;
      EXPECT_EQ(summary_of(-64).min, -64) << i;
    }
  }
}

TEST(Summary, CollectsFarNumbersUpToALimit) {
  std::vector<float> numbers(100, 1);
  numbers[3] = -9;
  numbers[50] = 10;
  numbers[99] = 11;
  FarNumbers far{.reach = 8, .most = 3};
  EXPECT_EQ(summarize(numbers, kSmallestNormal, far).max, 11);
  EXPECT_EQ(far.numbers, (std::vector<float>{-9, 10, 11}));
  EXPECT_TRUE(far.covers(-9, 9));
  EXPECT_FALSE(far.covers(-7, 9));
  numbers[70] = -12;  // one more than the limit: still an extreme, in this block and in the next
  for (int block = 0; block < 2; ++block) {
    const Summary summary = summarize(numbers, kSmallestNormal, far);
    EXPECT_EQ(summary.min, -12);
    EXPECT_EQ(summary.max, 11);
    EXPECT_FALSE(far.covers(-9, 9));
  }
}

// NumPy with float128: a = [1e300, -1e300, 3e300]; a.std(), sqrt((a**2).mean()), and the same times 1e-600.
TEST(Summary, OfDoublesWhoseSquaresFloat64DoesNotHold) {
  for (const double unit : {1e300, 1e-300}) {
    const std::vector<double> numbers = {unit, -unit, 3 * unit};
    Moments moments = summarize(numbers, 0).moments;
    EXPECT_DOUBLE_EQ(moments.find_mean() / unit, 1);
    EXPECT_DOUBLE_EQ(moments.find_deviation() / unit, 1.632993161855452);
    EXPECT_DOUBLE_EQ(moments.find_rms() / unit, 1.914854215512676);
    // The summary is merged with numbers of another magnitude.
    Moments ones = summarize(std::vector<double>{1, 1, 1}, 0).moments;
    ones.merge(moments);
    EXPECT_DOUBLE_EQ(ones.find_mean(), unit > 1 ? unit / 2 : 0.5);
  }
}

// float64 has no place for the mean of a piece, which lies in the middle between two numbers.
TEST(Summary, OfDoublesFarFromZero) {
  std::vector<double> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0x1p60 + 256 * static_cast<double>(i);
  const double deviation = 256 * std::sqrt((64.0 * 64 - 1) / 12);
  EXPECT_DOUBLE_EQ(summarize(numbers, 0).moments.find_deviation(), deviation);
  Summary merged;
  for (std::size_t i = 0; i < numbers.size(); i += 2) merged.merge(summarize(std::span(numbers).subspan(i, 2), 0));
  EXPECT_DOUBLE_EQ(merged.moments.find_deviation(), deviation);
  EXPECT_DOUBLE_EQ(merged.moments.find_mean(), 0x1p60 + 256 * 31.5);
}

TEST(Summary, MergesInPieces) {
  const std::vector<float> numbers = make_numbers();
  Summary merged;
  for (std::size_t i = 0; i < numbers.size(); i += 10) {
    FarNumbers far;
    merged.merge(summarize(std::span(numbers).subspan(i, 10), kSmallestNormal, far));
  }
  EXPECT_DOUBLE_EQ(merged.moments.find_mean(), -0.5);
  EXPECT_DOUBLE_EQ(merged.moments.find_deviation(), std::sqrt((40.0 * 40 - 1) / 12));
  merged.merge(Summary());
  EXPECT_EQ(merged.moments.count, 40U);
}

TEST(Summary, LargestRowIsTheFirstOfSeveral) {
  const std::vector<float> rows = {1, 1, 3, kNan, -3, 3, 0, 0};
  const LargestRow largest = find_largest_row(rows, 2);
  EXPECT_EQ(largest.row, 1U);
  EXPECT_EQ(largest.rms, 3);
}

TEST(Summary, LargestRowHasFiniteNumbers) {
  const std::vector<float> rows = {kNan, kNan, 0, kNan};
  const LargestRow largest = find_largest_row(rows, 2);
  EXPECT_EQ(largest.row, 1U);
  EXPECT_EQ(largest.rms, 0);
  EXPECT_TRUE(std::isnan(find_largest_row(std::span(rows).first(2), 2).rms));
}

}  // namespace
}  // namespace poise
