#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <poise/detail/name.hpp>

namespace poise {
namespace {

constexpr const char* kLong = "model.layers.3.self_attn.q_proj.weight";

TEST(Name, IsATextWithAZeroByteAfterIt) {
  for (const std::string text : {"", "a", "data", "dat", "datas", "packed_weight", "packed_weights", kLong}) {
    const Name name = text;
    EXPECT_EQ(name, text);
    EXPECT_EQ(name.size(), text.size());
    EXPECT_STREQ(name.c_str(), text.c_str());
    const std::string copy = name;
    EXPECT_EQ(copy, text);
  }
  const std::string zeros("data\0values", 11);
  EXPECT_EQ(Name(zeros).view(), zeros);
  EXPECT_EQ(Name(), "");
}

TEST(Name, CopiesAreTheirOwn) {
  Name first = kLong;
  Name second = first;
  EXPECT_NE(first.data(), second.data());
  first = "data";
  EXPECT_EQ(first, "data");
  EXPECT_EQ(second, kLong);
  first = second;
  EXPECT_EQ(first, kLong);
  first = *&first;
  EXPECT_EQ(first, kLong);
}

TEST(Name, MovesTakeTheBytes) {
  Name first = kLong;
  const char* const bytes = first.data();
  Name second = std::move(first);
  EXPECT_EQ(second.data(), bytes);
  Name third;
  third = std::move(second);
  EXPECT_EQ(third.data(), bytes);
  std::vector<Name> names;
  names.push_back(std::move(third));
  names.resize(100);
  EXPECT_EQ(names.front().data(), bytes);
}

TEST(Name, RolesShareTheirBytes) {
  EXPECT_EQ(Name("data").data(), Name(std::string("data")).data());
  EXPECT_EQ(Name("zeros").data(), Name("zeros").data());
  EXPECT_LT(sizeof(Name), sizeof(std::string));
}

TEST(Name, IsAddedToTexts) {
  const Name name = kLong;
  EXPECT_EQ("tensor " + name + ": ", std::string("tensor ") + kLong + ": ");
  EXPECT_EQ(std::string("a ") + name, std::string("a ") + kLong);
  std::string text;
  text += name;
  EXPECT_EQ(text, kLong);
}

}  // namespace
}  // namespace poise
