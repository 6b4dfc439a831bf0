#include "pack/member_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::HasSubstr;

TEST(MemberOrder, TheLastCounts) {
  MemberOrder order;
  EXPECT_EQ(order.find("a"), std::nullopt);
  order.add("a", "a");
  order.add("b", "b");
  EXPECT_FALSE(order.repeated("zip", "a.zip"));
  order.add("a", "./a");
  EXPECT_FALSE(order.counts(0));
  EXPECT_TRUE(order.counts(1) && order.counts(2));
  EXPECT_EQ(order.find("a"), 2U);
  const auto warning = order.repeated("zip", "a.zip");
  ASSERT_TRUE(warning);
  EXPECT_EQ(warning->path, "a.zip");
  EXPECT_THAT(warning->message, HasSubstr("zip: a (also as ./a): more than one member has this name"));
}

TEST(MemberOrder, FewNamesAreTold) {
  ToldNames names;
  EXPECT_TRUE(names.empty());
  for (int i = 0; i < 5; ++i) names.add(std::to_string(i));
  EXPECT_EQ(names.text(), "0, 1, 2, 3, 4");
  names.add("5");
  EXPECT_EQ(names.text(), "0, 1, 2, 3, 4 and 1 more");
  EXPECT_EQ(short_name(std::string(200, 'n')), std::string(200, 'n'));
  EXPECT_EQ(short_name(std::string(201, 'n')), std::string(200, 'n') + "...");
}

}  // namespace
}  // namespace poise
