#include "io/threads.hpp"

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(LazyValue, IsMadeOnceUntilItIsReleased) {
  const LazyValue<const int> kept;
  int made = 0;
  const auto make = [&] { return std::make_shared<const int>(++made); };
  EXPECT_EQ(*kept.get(make), 1);
  const auto held = kept.get(make);
  EXPECT_EQ(*held, 1);
  kept.release();
  EXPECT_EQ(*held, 1) << "who still reads keeps it";
  EXPECT_EQ(*kept.get(make), 2);
  EXPECT_EQ(made, 2);
}

TEST(LazyValue, AFailureIsNotKept) {
  const LazyValue<const int> kept;
  EXPECT_THROW(kept.get([]() -> std::shared_ptr<const int> { throw 1; }), int);
  EXPECT_EQ(*kept.get([] { return std::make_shared<const int>(7); }), 7);
}

}  // namespace
}  // namespace poise
