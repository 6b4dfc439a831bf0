// The index of texts, and the set of keys that is built on it, compared with the standard library's.
#include "bytes/text_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace poise {
namespace {

TEST(TextTable, FindsTheTextsThatAMapFinds) {
  std::vector<std::string> texts;
  std::unordered_map<std::string, std::uint32_t> expected;
  TextTable table;
  const auto text_at = [&](std::uint32_t at) -> std::string_view { return texts[at]; };
  EXPECT_FALSE(table.find("", text_at));
  for (std::uint32_t i = 0; i < 5000; ++i) {
    texts.push_back(std::to_string(i * i % 3001));  // many appear twice
    const auto [twin, is_new] = expected.try_emplace(texts.back(), i);
    const auto found = table.insert(texts.back(), i, text_at);
    EXPECT_EQ(found.has_value(), !is_new) << i;
    EXPECT_EQ(found.value_or(twin->second), twin->second) << i;
  }
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const auto found = expected.find(std::to_string(i));
    const auto at = table.find(std::to_string(i), text_at);
    ASSERT_EQ(at.has_value(), found != expected.end()) << i;
    EXPECT_TRUE(!at || *at == found->second) << i;
  }
  table.clear();
  EXPECT_FALSE(table.find("0", text_at));
  EXPECT_FALSE(table.insert("0", 0, text_at));
  EXPECT_TRUE(table.find("0", text_at));
}

TEST(TextTable, FindsTextsByTheirNewPositions) {
  constexpr std::uint32_t kCount = 1000;
  std::vector<std::string> texts;
  TextTable table;
  table.renumber({});
  for (std::uint32_t i = 0; i < kCount; ++i) texts.push_back(std::to_string(i));
  const auto text_at = [&](std::uint32_t at) -> std::string_view { return texts[at]; };
  for (std::uint32_t i = 0; i < kCount; ++i) table.insert(texts[i], i, text_at);
  std::vector<std::uint32_t> positions(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) positions[i] = kCount - 1 - i;
  table.renumber(positions);
  std::ranges::reverse(texts);
  for (std::uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(table.find(texts[i], text_at), i);
  EXPECT_FALSE(table.find("1000", text_at));
}

TEST(KeySet, FindsEachKeyOfFewOrMany) {
  std::vector<std::string> keys = {""};
  for (int i = 1; i < 1000; ++i) keys.push_back(std::to_string(i));
  for (const std::size_t count : {1U, 7U, 8U, 9U, 10U, 1000U}) {
    KeySet set;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(set.insert(keys[i])) << i << " of " << count;
      for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(set.insert(keys[i])) << i << " of " << count;
      set.clear();
    }
  }
}

}  // namespace
}  // namespace poise
