#include "kernels/activation.hpp"

#include <array>

#include <gtest/gtest.h>

namespace poise {
namespace {

// Expected numbers by Python in float64: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))).
TEST(Activation, GeluByTanh) {
  std::array x = {-3.0F, -1.0F, -0.25F, 0.0F, 0.5F, 1.0F, 2.5F, 30.0F};
  const std::array expected = {-0.0036373920817729943F, -0.15880800939172324F, -0.100324649298315F, 0.0F,
                               0.34571400982514394F,    0.8411919906082768F,   2.484915733910001F,  30.0F};
  gelu(x.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(x[i], expected[i]) << i;
}

}  // namespace
}  // namespace poise
