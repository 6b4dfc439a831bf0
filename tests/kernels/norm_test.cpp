#include "kernels/activation.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace poise {
namespace {

// 3, 4: the mean square is 12.5; with eps 12.5 the divisor is 5. Numbers by hand.
TEST(Norm, RootMeanSquare) {
  const std::array x = {3.0F, 4.0F, -30.0F, 40.0F};
  const std::array weight = {1.0F, 2.0F};
  std::array<float, 4> out = {};
  compute_rms_norm(x.data(), 2, weight, 12.5F, out.data());
  EXPECT_FLOAT_EQ(out[0], 0.6F);
  EXPECT_FLOAT_EQ(out[1], 1.6F);
  EXPECT_FLOAT_EQ(out[2], -30.0F / std::sqrt(1262.5F));
  EXPECT_FLOAT_EQ(out[3], 80.0F / std::sqrt(1262.5F));
}

// 1, 5, 3, 3: the mean is 3, the variance 2; with eps 2 the divisor is 2. Numbers by hand.
TEST(Norm, LayerNorm) {
  const std::array x = {1.0F, 5.0F, 3.0F, 3.0F};
  const std::array weight = {1.0F, 3.0F, 7.0F, 1.0F};
  const std::array bias = {0.5F, -1.0F, 0.25F, 0.0F};
  std::array<float, 4> out = {};
  compute_layer_norm(x.data(), 1, weight, bias, 2.0F, out.data());
  EXPECT_FLOAT_EQ(out[0], -0.5F);
  EXPECT_FLOAT_EQ(out[1], 2.0F);
  EXPECT_FLOAT_EQ(out[2], 0.25F);
  EXPECT_FLOAT_EQ(out[3], 0.0F);
}

// Sums in float32 would lose the deviations of numbers far from zero.
TEST(Norm, LayerNormFarFromZero) {
  const std::array x = {1e6F - 1, 1e6F + 1};
  const std::array weight = {1.0F, 1.0F};
  const std::array bias = {0.0F, 0.0F};
  std::array<float, 2> out = {};
  compute_layer_norm(x.data(), 1, weight, bias, 0, out.data());
  EXPECT_FLOAT_EQ(out[0], -1.0F);
  EXPECT_FLOAT_EQ(out[1], 1.0F);
}

}  // namespace
}  // namespace poise
