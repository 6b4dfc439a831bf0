#include <poise/detail/small_vector.hpp>

#include <gtest/gtest.h>

#include <string>

namespace poise {
namespace {

using Texts = SmallVector<std::string, 1>;

// As those of std::vector.
TEST(SmallVector, GrowsByItsOwnElements) {
  const std::string text(40, 'x');
  Texts resized{text};
  resized.resize(5, resized[0]);
  EXPECT_EQ(resized, Texts(5, text));
  Texts pushed{text};
  for (int i = 0; i < 4; ++i) pushed.push_back(pushed.front());
  EXPECT_EQ(pushed, Texts(5, text));
  resized.resize(2, resized[4]);
  EXPECT_EQ(resized, Texts(2, text));
}

}  // namespace
}  // namespace poise
