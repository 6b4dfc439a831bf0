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
  std::vector<float> frequencies;
  for (std::size_t i = 0; i < kHead / 2; ++i)
    frequencies.push_back(static_cast<float>(std::pow(100.0, -2.0 * static_cast<double>(i) / kHead)));
  const Rotation rotation(kHead, frequencies);
  Rotation::Angles angles;
  rotation.compute_angles(41, 3, angles);
  std::vector<float> x;
  for (std::size_t i = 0; i < kHead * kHeads; ++i) x.push_back(static_cast<float>(i) - 4.5F);
  const std::vector<float> before = x;
  rotation.apply(angles, 2, kHeads, x.data());
  for (std::size_t head = 0; head < kHeads; ++head) {
    for (std::size_t i = 0; i < kHead / 2; ++i) {
      const double frequency = std::pow(100.0, -2.0 * static_cast<double>(i) / kHead);
      const std::size_t at = head * kHead + i;
      const auto rotated = std::complex<double>(before[at], before[at + kHead / 2]) * std::polar(1.0, 43 * frequency);
      EXPECT_NEAR(x[at], rotated.real(), 1e-5);
      EXPECT_NEAR(x[at + kHead / 2], rotated.imag(), 1e-5);
    }
  }
}

TEST(Rotation, PositionZeroTurnsNothing) {
  const Rotation rotation(4, {1.0F, 0.01F});
  Rotation::Angles angles;
  rotation.compute_angles(0, 1, angles);
  std::vector<float> x = {1, 2, 3, 4};
  rotation.apply(angles, 0, 1, x.data());
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4}));
}

// Two of six elements turn, by one radian, and become twice as long: cos(1) = 0.5403023, sin(1) = 0.8414710.
TEST(Rotation, TurnsTheFirstElementsOfAHead) {
  const Rotation rotation(6, {1.0F}, 2.0F);
  Rotation::Angles angles;
  rotation.compute_angles(1, 1, angles);
  std::vector<float> x = {1, 0, 3, 4, 5, 6, 0, 1, 9, 10, 11, 12};
  rotation.apply(angles, 0, 2, x.data());
  const std::vector<float> expected = {1.0806046F, 1.6829420F, 3, 4, 5, 6, -1.6829420F, 1.0806046F, 9, 10, 11, 12};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(x[i], expected[i]) << i;
}

}  // namespace
}  // namespace poise
