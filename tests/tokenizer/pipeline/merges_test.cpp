#include "tokenizer/pipeline/merges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kNever = UINT32_MAX;

Vocabulary tokens(std::initializer_list<std::string_view> texts) {
  Vocabulary vocabulary;
  for (const std::string_view text : texts)
    vocabulary.add(text, -static_cast<float>(vocabulary.size()), TokenType::normal);
  return vocabulary;
}

// Holds a question for the merge of two tokens, by their texts.
struct Asked {
  std::uint32_t rank;
  std::string merged;

  friend bool operator==(const Asked&, const Asked&) = default;
};

class Case {
 public:
  Case(const Vocabulary& vocabulary, Attributes model, std::string_view prefix = {})
      : vocabulary_(vocabulary),
        model_(std::move(model)),
        ids_(vocabulary_, {}),
        merges_(Fields(model_, "tokenizer: model"), vocabulary_, ids_, prefix) {}

  Asked of(std::string_view left, std::string_view right) const {
    std::string buffer;
    const MergeTable::Merge merge = merges_.find(ids_.find(left).value(), ids_.find(right).value(), buffer);
    return {merge.rank, merge.merged < 0 ? "" : std::string(vocabulary_.text(static_cast<std::size_t>(merge.merged)))};
  }
  bool has_bytes() const { return merges_.has_bytes(); }

 private:
  const Vocabulary& vocabulary_;
  Attributes model_;
  TokenIndex ids_;
  Merges merges_;
};

TEST(Merges, AreThoseOfTheList) {
  Vocabulary vocabulary = tokens({"a", "b", "c", "ab", "bc", "abc"});
  vocabulary.merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}};
  const Case merges(vocabulary, {});
  EXPECT_EQ(merges.of("b", "c"), (Asked{0, "bc"}));
  EXPECT_EQ(merges.of("ab", "c"), (Asked{2, "abc"}));
  EXPECT_EQ(merges.of("a", "bc"), (Asked{kNever, ""})) << "it makes a token, but the list does not have it";
  EXPECT_EQ(merges.of("c", "b"), (Asked{kNever, ""}));
  EXPECT_FALSE(merges.has_bytes());
}

TEST(Merges, RepeatedMergesCountByTheirLastPlace) {
  Vocabulary vocabulary = tokens({"a", "b", "c", "ab", "bc", "abc"});
  vocabulary.merges = {{"ab", "c"}, {"a", "bc"}, {"ab", "c"}, {"a", "b"}, {"a", "b"}};
  const Case merges(vocabulary, {});
  EXPECT_EQ(merges.of("ab", "c"), (Asked{2, "abc"}));
  EXPECT_EQ(merges.of("a", "bc"), (Asked{1, "abc"}));
  EXPECT_EQ(merges.of("a", "b"), (Asked{4, "ab"}));
}

TEST(Merges, LeaveThePrefixOut) {
  Vocabulary vocabulary = tokens({"a", "##b", "ab", "xxb"});
  vocabulary.merges = {{"a", "##b"}};
  const Case merges(vocabulary, {}, "##");
  EXPECT_EQ(merges.of("a", "##b"), (Asked{0, "ab"}));
  EXPECT_EQ(merges.of("a", "xxb"), (Asked{kNever, ""}));
}

TEST(Merges, RefuseTheFirstFaultyMerge) {
  const auto refusal = [](MergeList merges) {
    Vocabulary vocabulary = tokens({"a", "b", "ab"});
    vocabulary.merges = std::move(merges);
    return support::error_of([&] { Case(vocabulary, {}); }).message();
  };
  EXPECT_THAT(refusal({{"a", "b"}, {"b", "a"}, {"x", "b"}}), HasSubstr("merges: \"ba\" is not a token"));
  EXPECT_THAT(refusal({{"a", "b"}, {"x", "b"}, {"b", "a"}}), HasSubstr("merges: \"x\" is not a token"));
  EXPECT_THAT(refusal({{"a", "y"}}), HasSubstr("merges: \"y\" is not a token"));
  Vocabulary vocabulary = tokens({"a", "b", "ab"});
  vocabulary.merges = {{"x", "b"}, {"a", "b"}, {"b", "a"}};
  EXPECT_EQ(Case(vocabulary, {{"skip_unknown_merges", true}}).of("a", "b"), (Asked{1, "ab"}));
}

// A better score is an earlier rank; tokens with equal scores have the same rank.
TEST(Merges, FollowScores) {
  Vocabulary vocabulary = tokens({"a", "b", "\xc3", "\xa9", "\xc3\xa9", "ab"});
  vocabulary.add("ba", 0, TokenType::normal);
  vocabulary.add("bb", -5, TokenType::normal);
  const Case merges(vocabulary, {{"merge_by_score", true}});
  EXPECT_EQ(merges.of("b", "a"), (Asked{0, "ba"}));
  EXPECT_EQ(merges.of("a", "b").merged, "ab");
  EXPECT_EQ(merges.of("a", "b").rank, merges.of("b", "b").rank);
  EXPECT_EQ(merges.of("\xc3", "\xa9"), (Asked{kNever, ""})) << "inside a character";
  EXPECT_EQ(merges.of("a", "a"), (Asked{kNever, ""}));
}

TEST(Merges, KnowWhetherBytesMerge) {
  Vocabulary vocabulary = tokens({"<0x0A>", "a", "<0x0A>a"});
  EXPECT_TRUE(Case(vocabulary, {{"merge_by_score", true}}).has_bytes());
  EXPECT_FALSE(Case(vocabulary, {}).has_bytes());
  vocabulary.merges = {{"<0x0A>", "a"}};
  EXPECT_TRUE(Case(vocabulary, {}).has_bytes());
}

TEST(MergeTable, FindsThePairsAddedLast) {
  MergeTable table;
  constexpr TokenId kPairs = 1'200'000;
  for (TokenId id = 0; id < kPairs; ++id) table.add(id, id + 1, {static_cast<std::uint32_t>(id), id});
  ASSERT_NE(table.find(kPairs - 1, kPairs), nullptr);
  EXPECT_EQ(table.find(kPairs - 1, kPairs)->rank, static_cast<std::uint32_t>(kPairs - 1));
  EXPECT_EQ(table.find(0, 1), nullptr) << "memory is bounded";
  EXPECT_EQ(table.find(1, 0), nullptr);
}

}  // namespace
}  // namespace poise
