#include "kernels/activation.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

// Numbers to feed, and enough of them for whole vectors and a rest.
constexpr std::array kNumbers = {-3.0F, -1.0F, -0.25F, 0.0F, 0.5F, 1.0F, 2.5F, 30.0F};
constexpr std::size_t kTimes = 5;

std::vector<float> repeated(const std::array<float, kNumbers.size()>& numbers) {
  std::vector<float> all;
  for (std::size_t i = 0; i < kTimes * numbers.size() - 3; ++i) all.push_back(numbers[i % numbers.size()]);
  return all;
}

// Expects the results of the function alone, and of its product with 3.
void expect_activation(void (*alone)(float*, std::size_t), void (*product)(float*, const float*, std::size_t),
                       const std::array<float, kNumbers.size()>& expected) {
  std::vector<float> x = repeated(kNumbers);
  std::vector<float> gate = x;
  const std::vector<float> up(x.size(), 3.0F);
  alone(x.data(), x.size());
  product(gate.data(), up.data(), gate.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], expected[i % expected.size()], 4e-7) << i;
    EXPECT_NEAR(gate[i], 3 * expected[i % expected.size()], 12e-7) << i;
  }
}

// Expected numbers by Python in float64: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))).
TEST(Activation, GeluByTanh) {
  const std::array expected = {-0.0036373920817729943F, -0.15880800939172324F, -0.100324649298315F, 0.0F,
                               0.34571400982514394F,    0.8411919906082768F,   2.484915733910001F,  30.0F};
  expect_activation(apply_gelu_tanh, gate_with_gelu_tanh, expected);
}

// Python: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
TEST(Activation, GeluByErf) {
  expect_activation(apply_gelu, gate_with_gelu,
                    {-0.00404969409489031F, -0.15865525393145707F, -0.10032341857926907F, 0.0F, 0.34573123063700656F,
                     0.8413447460685429F, 2.4844758366855597F, 30.0F});
}

// Python: x / (1 + math.exp(-x))
TEST(Activation, Silu) {
  expect_activation(apply_silu, gate_with_silu,
                    {-0.14227761953270035F, -0.2689414213699951F, -0.10945587477855048F, 0.0F, 0.3112296656009273F,
                     0.7310585786300049F, 2.3103545499468914F, 30.0F});
}

TEST(Activation, Relu) {
  expect_activation(apply_relu, gate_with_relu, {0.0F, 0.0F, 0.0F, 0.0F, 0.5F, 1.0F, 2.5F, 30.0F});
}

// Python: g = min(g, 7), u = max(-7, min(7, u)), g / (1 + math.exp(-1.702 * g)) * (u + 1)
TEST(Activation, ClampedSwiglu) {
  std::vector<float> gate = {-3, 9, 0.5F, 0.5F, 7, -30};
  const std::vector<float> up = {2, 0.5F, 9, -9, -1, 1};
  const std::vector<float> expected = {
      -0.05421392912335791F, 10.499929692454977F, 2.803107492851041F, -2.102330619638281F, 0, -4.009359549001876e-21F};
  apply_clamped_swiglu(gate.data(), up.data(), gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) EXPECT_NEAR(gate[i], expected[i], 2e-6) << i;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> none = {kNan, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<float> other = {1, kNan, 1, 1, 1, 1, 1, 1, kNan};
  apply_clamped_swiglu(none.data(), other.data(), none.size());
  for (std::size_t i = 0; i < none.size(); ++i) EXPECT_EQ(std::isnan(none[i]), i < 2 || i == 8) << i;
}

// Python: 50 * math.tanh(x / 50)
TEST(Activation, SoftCap) {
  std::vector<float> x = {-200, -30, -0.25F, 0, 0.5F, 1e-3F, 75, 1e30F, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> expected = {-49.966464986953355F, -26.852478349901766F,   -0.2499979166874998F, 0,
                                       0.499983333999973F,   0.0009999999998666668F, 45.25741268224332F,   50};
  apply_soft_cap(x.data(), x.size(), 50);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(x[i], expected[i], 1e-6 * std::max(1.0F, std::abs(expected[i]))) << i;
  EXPECT_TRUE(std::isnan(x.back()));
}

}  // namespace
}  // namespace poise
