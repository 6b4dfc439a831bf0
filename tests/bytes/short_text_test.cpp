// Expected texts are written by hand.
#include "bytes/short_text.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(ShortText, LongTextsAreCut) {
  EXPECT_EQ(shorten("", 3), "");
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc...");
  EXPECT_EQ(shorten("abcd", 0), "...");
}

TEST(ShortText, CharactersStayWhole) {
  EXPECT_EQ(shorten("a\u00e9b", 2), "a...");
  EXPECT_EQ(shorten("a\u00e9b", 3), "a\u00e9...");
  EXPECT_EQ(shorten("\U0001f600b", 3), "...");
  EXPECT_EQ(shorten("\U0001f600b", 4), "\U0001f600...");
  EXPECT_EQ(shorten(std::string(9, '\x80'), 6), std::string(3, '\x80') + "...");  // not one valid character
}

TEST(ShortText, ManyNamesAreCounted) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EXPECT_EQ(list_names(std::vector<std::string_view>()), "");
  EXPECT_EQ(list_names(names), "a, b, c");
  EXPECT_EQ(list_names(names, 3), "a, b, c");
  EXPECT_EQ(list_names(names, 2), "a, b and 1 more");
  EXPECT_EQ(list_names(std::vector<std::string>(12, "x"), 1), "x and 11 more");
  EXPECT_EQ(format_more(0), "");
}

}  // namespace
}  // namespace poise
