// Codes of every instruction set, compared with the definition: round(x / delta), in float32, ties to even.
#include "codec/quantize_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/instruction_set.hpp"

namespace poise {
namespace {

class QuantizeKernels : public EachInstructionSet {};

// Returns numbers next to the middle between two codes, and the middle itself, for each pair of codes in a range.
std::vector<float> make_numbers_between_codes(float delta, int lowest, int highest) {
  std::vector<float> numbers;
  for (int code = lowest - 2; code <= highest + 2; ++code) {
    float x = static_cast<float>((code + 0.5) * static_cast<double>(delta));
    for (int i = 0; i < 3; ++i) x = std::nextafter(x, -1e38F);
    for (int i = 0; i < 7; ++i, x = std::nextafter(x, 1e38F)) numbers.push_back(x);
  }
  for (const float x : {0.0F, -0.0F, 3e38F, -3e38F, 1e-44F}) numbers.push_back(x);
  return numbers;
}

TEST_P(QuantizeKernels, CodesAreThoseOfTheDefinition) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::vector<float> deltas = {1.0F,        0x1.0b8p+0F, 0x1.fffffep-7F, 0x1p-99F,
                               0x1.8p-101F, 0x1.3p-120F, 0x1p-126F,      0x1.1p100F};
  for (int i = 0; i < 200; ++i) deltas.push_back(std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 30));
  for (const float delta : deltas) {
    for (const CodeRange range : {CodeRange{-127, 127, 0}, CodeRange{-7, 7, 0}, CodeRange{-40, 215, 40}}) {
      const std::vector<float> numbers = make_numbers_between_codes(delta, range.lowest, range.highest);
      std::vector<std::byte> codes(numbers.size());
      quantize_linear(numbers.data(), numbers.size(), delta, range, codes.data());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float quotient = numbers[i] / delta;
        const float code =
            std::nearbyint(std::clamp(quotient, static_cast<float>(range.lowest), static_cast<float>(range.highest)));
        ASSERT_EQ(codes[i], static_cast<std::byte>(static_cast<int>(code) + range.zero))
            << numbers[i] << " / " << delta;
      }
    }
  }
}

TEST_P(QuantizeKernels, GroupsHaveRangesCodesAndLossesOfTheirOwn) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const std::size_t size : {4U, 8U, 12U, 16U, 40U, 64U, 128U, 4096U}) {
    for (const std::size_t groups : {1U, 3U, 40U}) {
      std::vector<float> numbers(groups * size);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = std::ldexp(uniform(random), static_cast<int>(i / size % 30) - 15);
      std::vector<GroupRange> ranges(groups);
      const std::uint32_t largest = find_group_ranges(numbers, ranges);
      std::vector<GroupFactor> factors;
      for (std::size_t g = 0; g < groups; ++g) {
        const auto [min, max] = std::minmax_element(numbers.begin() + static_cast<std::ptrdiff_t>(g * size),
                                                    numbers.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
        ASSERT_EQ(ranges[g].min, *min);
        ASSERT_EQ(ranges[g].max, *max);
        // Some numbers leave the range of codes.
        factors.push_back(
            {std::ldexp(1.0F + static_cast<float>(g) / 64, static_cast<int>(g % 30) - 18), static_cast<int>(g % 16)});
      }
      const auto magnitude = [](float a, float b) { return std::abs(a) < std::abs(b); };
      EXPECT_EQ(largest, std::bit_cast<std::uint32_t>(std::abs(*std::ranges::max_element(numbers, magnitude))));
      std::vector<std::byte> codes(numbers.size());
      const QuantizationError error = quantize_groups_linear(numbers, factors, 15, codes.data());
      double worst = 0;
      double squares = 0;
      double losses = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const GroupFactor& group = factors[i / size];
        const auto code = static_cast<int>(std::nearbyint(std::clamp(
            numbers[i] / group.factor, static_cast<float>(-group.zero), static_cast<float>(15 - group.zero))));
        ASSERT_EQ(codes[i], static_cast<std::byte>(code + group.zero)) << numbers[i] << " / " << group.factor;
        const double lost = static_cast<double>(numbers[i]) - code * static_cast<double>(group.factor);
        worst = std::max(worst, std::abs(lost));
        losses += lost * lost;
        squares += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
      }
      EXPECT_EQ(error.values, numbers.size());
      EXPECT_NEAR(error.worst, worst, 1e-6 * worst);
      EXPECT_NEAR(error.squared_error, losses, 1e-5 * losses);
      EXPECT_NEAR(error.squared_values, squares, 1e-5 * squares);
    }
  }
}

TEST_P(QuantizeKernels, RangesReportNumbersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0U, 17U, 127U}) {
      std::vector<float> numbers(128, 1.0F);
      numbers[at] = bad;
      std::vector<GroupRange> ranges(4);
      EXPECT_GE(find_group_ranges(numbers, ranges), 0x7f800000U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, QuantizeKernels, every_instruction_set(), instruction_set_name);

TEST_P(QuantizeKernels, LossesAreDifferencesAndTheirSquares) {
  std::mt19937 random(7);
  for (const std::size_t count : {0U, 1U, 3U, 8U, 31U, 32U, 257U}) {
    std::vector<float> numbers(count);
    std::vector<float> decoded(count);
    double worst = 0;
    double squared_error = 0;
    double squared_values = 0;
    for (std::size_t i = 0; i < count; ++i) {
      numbers[i] = std::ldexp(static_cast<float>(static_cast<int>(random() % 2001) - 1000),
                              static_cast<int>(random() % 160) - 80);  // squares overflow float32
      decoded[i] = numbers[i] * (1 + static_cast<float>(static_cast<int>(random() % 21) - 10) / 256);
      const auto lost = static_cast<double>(numbers[i] - decoded[i]);
      worst = std::max(worst, std::abs(lost));
      squared_error += lost * lost;
      squared_values += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
    }
    const QuantizationError error = measure_loss(numbers.data(), decoded.data(), count);
    EXPECT_EQ(error.values, count);
    EXPECT_EQ(error.worst, worst);
    EXPECT_NEAR(error.squared_error, squared_error, 1e-12 * squared_error);
    EXPECT_NEAR(error.squared_values, squared_values, 1e-12 * squared_values);
  }
}

}  // namespace
}  // namespace poise
