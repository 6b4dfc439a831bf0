#include "tokenizer/kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::ElementsAre;

TEST(TokenKinds, EachHasARowThatItsNameFinds) {
  for (const auto kind : {VocabularyKind::sentencepiece_bpe, VocabularyKind::sentencepiece_unigram,
                          VocabularyKind::byte_pair, VocabularyKind::pipeline}) {
    const VocabularyKindRow& row = get_kind_row(kind);
    EXPECT_EQ(row.kind, kind);
    EXPECT_EQ(find_kind_row(row.name), &row) << row.name;
  }
  EXPECT_EQ(find_kind_row("wordpiece"), nullptr);
  EXPECT_EQ(find_kind_row(""), nullptr);
}

// Files contain these names (docs/formats/ztensor.md).
TEST(TokenKinds, NamesAreThoseOfTheFiles) {
  EXPECT_EQ(get_kind_name(VocabularyKind::sentencepiece_bpe), "sentencepiece_bpe");
  EXPECT_EQ(get_kind_name(VocabularyKind::sentencepiece_unigram), "sentencepiece_unigram");
  EXPECT_EQ(get_kind_name(VocabularyKind::byte_pair), "byte_pair");
  EXPECT_EQ(get_kind_name(VocabularyKind::pipeline), "pipeline");
}

TEST(TokenKinds, AKindWithoutARowIsABug) { EXPECT_THROW(get_kind_row(static_cast<VocabularyKind>(99)), Error); }

// Worked out by hand: "\u2581a" and "b" have the sum -3, "\u2581" and "ab" have -3.5.
TEST(TokenKinds, UnigramTakesTheLargestSum) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::sentencepiece_unigram;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("\u2581", -2, TokenType::normal);
  vocabulary.add("ab", -1.5F, TokenType::normal);
  vocabulary.add("\u2581a", -1, TokenType::normal);
  vocabulary.add("b", -2, TokenType::normal);
  const Tokenizer tokenizer(vocabulary);
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(3, 4));
  EXPECT_THAT(tokenizer.encode("xyab"), ElementsAre(1, 0, 2)) << "a run of unknown characters is one token";
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{3, 4}), "ab");
}

}  // namespace
}  // namespace poise
