#include "kernels/rotation.hpp"

#include <cmath>
#include <complex>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

// A pair of elements is a complex number, and turning it a product with e^(i angle).
TEST(Rotation, TurnsPairsByPositionAndFrequency) {
  constexpr std::size_t kHead = 6;
  constexpr std::size_t kHeads = 2;
  const Rotation rotation(kHead, 100.0F);
  Rotation::Angles angles;
  rotation.prepare(41, 3, angles);
  std::vector<float> x;
  for (std::size_t i = 0; i < kHead * kHeads; ++i) x.push_back(static_cast<float>(i) - 4.5F);
  const std::vector<float> before = x;
  rotation.apply(angles, 2, kHeads, x.data());
  for (std::size_t head = 0; head < kHeads; ++head) {
    for (std::size_t i = 0; i < kHead / 2; ++i) {
      const double frequency = std::pow(100.0, -2.0 * static_cast<double>(i) / kHead);
      const std::size_t at = head * kHead + i;
      const auto turned = std::complex<double>(before[at], before[at + kHead / 2]) * std::polar(1.0, 43 * frequency);
      EXPECT_NEAR(x[at], turned.real(), 1e-5);
      EXPECT_NEAR(x[at + kHead / 2], turned.imag(), 1e-5);
    }
  }
}

TEST(Rotation, PositionZeroTurnsNothing) {
  const Rotation rotation(4, 10000.0F);
  Rotation::Angles angles;
  rotation.prepare(0, 1, angles);
  std::vector<float> x = {1, 2, 3, 4};
  rotation.apply(angles, 0, 1, x.data());
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace poise
