#include "patterns/glob.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(Glob, MatchesTheWholeName) {
  EXPECT_TRUE(matches_glob("lm_head.weight", "lm_head.weight"));
  EXPECT_FALSE(matches_glob("lm_head", "lm_head.weight"));
  EXPECT_FALSE(matches_glob("lm_head.weight", "lm_head"));
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_FALSE(matches_glob("", "a"));
  EXPECT_FALSE(matches_glob("?", ""));
}

TEST(Glob, AStarIsAnyRun) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("model.layers.*.self_attn.*", "model.layers.10.self_attn.q_proj.weight"));
  EXPECT_TRUE(matches_glob("*ab", "aab"));
  EXPECT_TRUE(matches_glob("**a**", "a"));
  EXPECT_TRUE(matches_glob("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(matches_glob("a*b*c", "a.c.b"));
}

TEST(Glob, AQuestionMarkIsOneCharacterOfUtf8) {
  EXPECT_TRUE(matches_glob("gr?n", "grün"));
  EXPECT_TRUE(matches_glob("?", "😀"));
  EXPECT_FALSE(matches_glob("??", "é"));
  EXPECT_TRUE(matches_glob("a?b",
                           "a\xff"
                           "b"));  // an invalid byte counts as one character
}

TEST(Glob, ASetMatchesOneOfItsCharacters) {
  EXPECT_TRUE(matches_glob("caf[é]", "café"));
  EXPECT_FALSE(matches_glob("caf[é]", "caf\xc3"));
  EXPECT_FALSE(matches_glob("[é]", "è"));
  EXPECT_TRUE(matches_glob("[!é]", "è"));
  EXPECT_FALSE(matches_glob("[!é]", "é"));
  EXPECT_TRUE(matches_glob("[à-ü]", "é"));
  EXPECT_FALSE(matches_glob("[à-ü]", "z"));
  EXPECT_TRUE(matches_glob("layers.[0-3].*", "layers.2.w"));
  EXPECT_FALSE(matches_glob("layers.[^0-3].*", "layers.2.w"));
  EXPECT_TRUE(matches_glob("[[:digit:]x][[:alpha:]]", "7b"));
  EXPECT_FALSE(matches_glob("[[:digit:]]", "b"));
}

// Expected: POSIX, "Pattern Matching Notation".
TEST(Glob, BracketsWithoutASetStandForThemselves) {
  EXPECT_TRUE(matches_glob("[]]", "]"));
  EXPECT_TRUE(matches_glob("[!]]", "a"));
  EXPECT_TRUE(matches_glob("[a-]", "-"));
  EXPECT_TRUE(matches_glob("a[0", "a[0"));
  EXPECT_FALSE(matches_glob("a[0", "a0"));
  EXPECT_TRUE(matches_glob("[", "["));
  EXPECT_TRUE(matches_glob("\\*", "\\x"));  // a backslash does not escape
}

TEST(Glob, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(100'000, 'a')));
  EXPECT_TRUE(matches_glob(pattern, std::string(100'000, 'a')));
}

// A "[" without an end is a plain character, also where a class or a "]" after it belongs to another set.
TEST(Glob, ManyBracketsWithoutEndTakeNoTime) {
  const std::string brackets(20'000, '[');
  EXPECT_TRUE(matches_glob(brackets, brackets));
  EXPECT_FALSE(matches_glob("*" + brackets + "x", brackets));
  std::string classes;
  std::string name;
  for (int i = 0; i < 3000; ++i) {
    classes += "[[:a:]";
    name += "[a";
  }
  EXPECT_TRUE(matches_glob(classes, name));
  EXPECT_FALSE(matches_glob("*" + classes + "x", name));
  std::string open_classes = "*[";
  for (int i = 0; i < 10'000; ++i) open_classes += "[:";
  EXPECT_FALSE(matches_glob(open_classes + "a]x", std::string(10'000, ':')));
  EXPECT_TRUE(matches_glob("[[:digit:]", "[g"));
  EXPECT_TRUE(matches_glob("[!]", "[!]"));
  EXPECT_TRUE(matches_glob("[a-]", "-"));
}

// A star matches as little as the rest of the pattern allows, the first star first.
TEST(Glob, FindsTheTextsThatStarsMatch) {
  using Texts = std::vector<std::string_view>;
  EXPECT_EQ(find_glob_stars("a.*.*", "a.0.x.y"), (Texts{"0", "x.y"}));
  EXPECT_EQ(find_glob_stars("*.weight", "a.weight.weight"), Texts{"a.weight"});
  EXPECT_EQ(find_glob_stars("*a*b", "xaabab"), (Texts{"x", "aba"}));
  EXPECT_EQ(find_glob_stars("**", "ab"), (Texts{"", "ab"}));
  EXPECT_EQ(find_glob_stars("*?*", "\u00fcx"), (Texts{"", "x"}));
  EXPECT_EQ(find_glob_stars("[*]*[a-c]", "*xyb"), Texts{"xy"});
  EXPECT_EQ(find_glob_stars("ab", "ab"), Texts{});
  EXPECT_EQ(find_glob_stars("a*", "b"), std::nullopt);
}

TEST(Glob, CountsStarsOutsideOfSets) {
  EXPECT_EQ(count_glob_stars(""), 0U);
  EXPECT_EQ(count_glob_stars("a*.**"), 3U);
  EXPECT_EQ(count_glob_stars("[*]x[!*a]*"), 1U);
  EXPECT_EQ(count_glob_stars("[*"), 1U);  // not a set: the bracket stands for itself
}

}  // namespace
}  // namespace poise
