// The first and the last character of every length, and byte sequences that table 3-7 of the Unicode Standard
// ("Well-Formed UTF-8 Byte Sequences") does not list.
#include "bytes/utf8.hpp"

#include <string>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(Utf8, CharactersOfEveryLength) {
  for (const std::string_view text : {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                      "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(measure_character(text), text.size()) << text;
    EXPECT_TRUE(is_utf8(text)) << text;
    EXPECT_TRUE(is_utf8("eight ASCII letters, then " + std::string(text) + " and more")) << text;
  }
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, FindsMalformedBytes) {
  for (const std::string_view text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(measure_character(text), 0U) << text;
    EXPECT_FALSE(is_utf8(text)) << text;
    EXPECT_FALSE(is_utf8("eight ASCII letters, then " + std::string(text) + " and more")) << text;
  }
}

TEST(Utf8, ACharacterThatIsNotCompleteYet) {
  EXPECT_EQ(measure_incomplete_tail("ab\xe2\x82"), 2U);
  EXPECT_EQ(measure_incomplete_tail("ab\xe2\x82\xac"), 0U);
  EXPECT_EQ(measure_incomplete_tail("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(measure_incomplete_tail(""), 0U);
  EXPECT_EQ(measure_incomplete_tail("\xe1\x80"), 2U);
  EXPECT_EQ(measure_incomplete_tail("\xf4\x8f"), 2U);
  for (const std::string_view text :
       {"\xff", "\xf8\x80", "\xf5", "\xc1", "\xe0\x9f", "\xed\xa0", "\xf0\x8f\xbf", "\xf4\x90", "\x80"})
    EXPECT_EQ(measure_incomplete_tail(text), 0U) << text;
}

}  // namespace
}  // namespace poise
