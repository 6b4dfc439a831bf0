// Codes of every instruction set, beside the definition: round(x / delta), in float32, ties to even.
#include "tensor/quantize_kernels.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace poise {
namespace {

class QuantizeKernels : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

// Numbers that are nearly, or just, half a code.
std::vector<float> halves(float delta, int lowest, int highest) {
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
  std::vector<float> deltas = {1.0F, 0x1.0b8p+0F, 0x1.fffffep-7F, 0x1p-99F, 0x1.8p-101F, 0x1.3p-120F, 0x1p-126F, 0x1.1p100F};
  for (int i = 0; i < 200; ++i) deltas.push_back(std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 30));
  for (const float delta : deltas) {
    for (const CodeRange range : {CodeRange{-127, 127, 0}, CodeRange{-7, 7, 0}, CodeRange{-40, 215, 40}}) {
      const std::vector<float> numbers = halves(delta, range.lowest, range.highest);
      std::vector<std::byte> codes(numbers.size());
      quantize_linear(numbers.data(), numbers.size(), delta, range, codes.data());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float quotient = numbers[i] / delta;
        const float code = std::nearbyint(std::clamp(quotient, static_cast<float>(range.lowest), static_cast<float>(range.highest)));
        ASSERT_EQ(codes[i], static_cast<std::byte>(static_cast<int>(code) + range.zero)) << numbers[i] << " / " << delta;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, QuantizeKernels, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<std::int64_t>& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace poise
