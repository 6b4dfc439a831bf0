#include "patterns/regex.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::ElementsAre;

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  const Regex regex(expression, "test");
  RegexMatcher matcher(regex);
  matcher.start_time_limit(text.size());
  matcher.begin_text(text);
  std::vector<std::string> found;
  for (std::size_t begin = 0, end = 0; matcher.find_next(begin, end);)
    found.emplace_back(text.substr(begin, end - begin));
  return found;
}

// Constructs that PCRE2 interprets differently. Expected: Oniguruma's documentation (doc/RE).
TEST(Regex, MeansWhatOnigurumaMeans) {
  EXPECT_THAT(matches(R"(\s)", "a\u180e\u0085\u3000"), ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(matches(R"([^\s])", "\u180e\u0085"), ElementsAre("\u180e"));
  EXPECT_THAT(matches(R"(\w+)", "e\u0301\u203f-x"), ElementsAre("e\u0301\u203f", "x"));
  EXPECT_THAT(matches(R"(\w+)", "o\u24d4!"), ElementsAre("o\u24d4"));
  EXPECT_THAT(matches(R"(\h+)", "xyzBEEF "), ElementsAre("BEEF"));
  EXPECT_THAT(matches(R"([a-z&&[^m-o]]+)", "almost"), ElementsAre("al", "st"));
  EXPECT_THAT(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab\u4e00cd"), ElementsAre("ab", "cd"));
  EXPECT_THAT(matches(R"(\u4e00)", "\u4e00"), ElementsAre("\u4e00"));
  EXPECT_THAT(matches("^a$", "a\nba\na"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a{1,2}+b", "aaaaab"), ElementsAre("aaaaab"));
  EXPECT_THAT(matches("x{,2}", "xxx"), ElementsAre("xx", "x"));
}

// Sets of characters. Expected: the results of Hugging Face's tokenizers 0.23.2, which runs Oniguruma.
TEST(Regex, SetsAreThoseOfOniguruma) {
  EXPECT_THAT(matches(R"(\p{Han}+)", "\u4e00\u3002\u3005"), ElementsAre("\u4e00", "\u3005"));
  EXPECT_THAT(matches(R"([\p{Han}]+)", "\u4e00\u3002"), ElementsAre("\u4e00"));
  EXPECT_THAT(matches(R"(\P{hani}+)", "\u4e00\u3002a"), ElementsAre("\u3002a"));
  EXPECT_THAT(matches(R"(\w+)", "x\u00b2\u00bd\u2460"), ElementsAre("x\u00b2\u00bd"));
  EXPECT_THAT(matches(R"([\w]+)", "x\u00b2"), ElementsAre("x"));
  EXPECT_THAT(matches(R"([\W]+)", "x\u0301\u00b2"), ElementsAre("\u00b2"));
  EXPECT_THAT(matches(R"(\b\S+\b)", "+\u00bd+"), ElementsAre("\u00bd"));
  EXPECT_THAT(matches(R"([[:punct:]]+)", "\u00a2!a"), ElementsAre("\u00a2!"));
  EXPECT_THAT(matches(R"(\p{Punct}+)", "\u00a2!a"), ElementsAre("!"));
  EXPECT_THAT(matches(R"([[:alpha:]]+)", "a\u0345\u24d0-"), ElementsAre("a\u0345\u24d0"));
  EXPECT_THAT(matches(R"([[:^upper:]]+)", "A\u2160b"), ElementsAre("b"));
  EXPECT_THAT(matches(R"([[:space:]]+)", " \u180e\u3000"), ElementsAre(" ", "\u3000"));
  EXPECT_THAT(matches(R"([[:graph:]]+)", "a\ue000 \u0007"), ElementsAre("a\ue000"));
  EXPECT_THAT(matches(R"(\p{^Uppercase_Letter}+)", "aAb"), ElementsAre("a", "b"));
  EXPECT_THAT(matches(R"(\p{L}\O)", "a\nb"), ElementsAre("a\n"));
}

// Expected: the matches of Oniguruma 6.9.8.
TEST(Regex, MatchesWhatOnigurumaMatches) {
  EXPECT_THAT(matches("a{2}?b", "abaab"), ElementsAre("b", "aab"));
  EXPECT_THAT(matches(R"(\p{Word}+)", "x\u00b2"), ElementsAre("x"));
  EXPECT_THAT(matches("[[:^punct:]]+", "!$\u00a2a"), ElementsAre("$\u00a2a"));
  EXPECT_THAT(matches("[a&&]", "ab"), ElementsAre());
  EXPECT_THAT(matches("[^a&&]", "ab"), ElementsAre("a", "b"));
  // PCRE2 10.42 makes \P{...}+ possessive before \P{...}.
  EXPECT_THAT(matches(R"(\P{Lu}+\P{Nd})", "1a"), ElementsAre("1a"));
  EXPECT_THAT(matches(R"(\P{L}+\P{N})", "1a.b"), ElementsAre("1a", ".b"));
}

TEST(Regex, EmptyMatchesAdvanceByACharacter) {
  EXPECT_THAT(matches(R"((?=(\d{3})+(?!\d)))", "1234567"), ElementsAre("", ""));
  EXPECT_THAT(matches("a*", "ba"), ElementsAre("", "a"));
}

// Matches far from where the search begins are found window by window.
TEST(Regex, FindsMatchesFarAway) {
  const std::string text = std::string(100'000, '-') + "x" + std::string(100'000, '-') + "x";
  EXPECT_THAT(matches("x", text), ElementsAre("x", "x"));
  EXPECT_EQ(matches("-+", text).size(), 2U);
}

// PCRE2 cannot compile this expression to machine code, and takes a thousand times as long for each step.
TEST(Regex, ExpressionsTooLargeForMachineCodeEnd) {
  std::string expression;
  for (int i = 0; i < 6000; ++i) expression += "[^a]{0,50}";
  EXPECT_THAT([&] { matches(expression + "0", "model.layers.0.mlp.up_proj"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("match limit exceeded")));
}

TEST(Regex, MatchesThatTakeTooLongAreAnError) {
  EXPECT_THROW(matches("(a+)+[bc]", std::string(100, 'a')), Error);
  EXPECT_THROW(Regex(std::string(100'000, 'a'), "test"), Error);
  EXPECT_THROW(Regex("[a", "test"), Error);
}

TEST(Regex, FindsGroups) {
  const Regex regex(R"((\d+)-(x)?(y)?)", "test");
  EXPECT_EQ(regex.count_groups(), 3U);
  RegexMatcher matcher(regex, regex.count_groups());
  const std::string text = "12-y 3-x";
  matcher.start_time_limit(text.size());
  matcher.begin_text(text);
  std::size_t begin = 0;
  std::size_t end = 0;
  ASSERT_TRUE(matcher.find_next(begin, end));
  EXPECT_EQ(matcher.find_group(1), "12");
  EXPECT_EQ(matcher.find_group(2), "");
  EXPECT_EQ(matcher.find_group(3), "y");
  ASSERT_TRUE(matcher.find_next(begin, end));
  EXPECT_EQ(matcher.find_group(1), "3");
  EXPECT_EQ(matcher.find_group(2), "x");
  EXPECT_EQ(matcher.find_group(3), "");
  EXPECT_FALSE(matcher.find_next(begin, end));
}

}  // namespace
}  // namespace poise
