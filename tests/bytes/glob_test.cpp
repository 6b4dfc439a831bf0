#include "patterns/glob.hpp"

#include <string>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(Glob, MatchesTheWholeName) {
  EXPECT_TRUE(glob_matches("lm_head.weight", "lm_head.weight"));
  EXPECT_FALSE(glob_matches("lm_head", "lm_head.weight"));
  EXPECT_FALSE(glob_matches("lm_head.weight", "lm_head"));
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("?", ""));
}

TEST(Glob, AStarIsAnyRun) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("model.layers.*.self_attn.*", "model.layers.10.self_attn.q_proj.weight"));
  EXPECT_TRUE(glob_matches("*ab", "aab"));
  EXPECT_TRUE(glob_matches("**a**", "a"));
  EXPECT_TRUE(glob_matches("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(glob_matches("a*b*c", "a.c.b"));
}

TEST(Glob, AQuestionMarkIsOneCharacterOfUtf8) {
  EXPECT_TRUE(glob_matches("gr?n", "grün"));
  EXPECT_TRUE(glob_matches("?", "😀"));
  EXPECT_FALSE(glob_matches("??", "é"));
  EXPECT_TRUE(glob_matches("a?b",
                           "a\xff"
                           "b"));  // an invalid byte counts as one character
}

TEST(Glob, ASetIsOfCharacters) {
  EXPECT_TRUE(glob_matches("caf[é]", "café"));
  EXPECT_FALSE(glob_matches("caf[é]", "caf\xc3"));
  EXPECT_FALSE(glob_matches("[é]", "è"));
  EXPECT_TRUE(glob_matches("[!é]", "è"));
  EXPECT_FALSE(glob_matches("[!é]", "é"));
  EXPECT_TRUE(glob_matches("[à-ü]", "é"));
  EXPECT_FALSE(glob_matches("[à-ü]", "z"));
  EXPECT_TRUE(glob_matches("layers.[0-3].*", "layers.2.w"));
  EXPECT_FALSE(glob_matches("layers.[^0-3].*", "layers.2.w"));
  EXPECT_TRUE(glob_matches("[[:digit:]x][[:alpha:]]", "7b"));
  EXPECT_FALSE(glob_matches("[[:digit:]]", "b"));
}

// As POSIX has it ("Pattern Matching Notation").
TEST(Glob, WhatLooksLikeASetAndIsNone) {
  EXPECT_TRUE(glob_matches("[]]", "]"));
  EXPECT_TRUE(glob_matches("[!]]", "a"));
  EXPECT_TRUE(glob_matches("[a-]", "-"));
  EXPECT_TRUE(glob_matches("a[0", "a[0"));
  EXPECT_FALSE(glob_matches("a[0", "a0"));
  EXPECT_TRUE(glob_matches("[", "["));
  EXPECT_TRUE(glob_matches("\\*", "\\x"));  // nothing is escaped
}

TEST(Glob, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(100'000, 'a')));
  EXPECT_TRUE(glob_matches(pattern, std::string(100'000, 'a')));
}

}  // namespace
}  // namespace poise
