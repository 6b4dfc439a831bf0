#include "tokenizer/kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::HasSubstr;

TEST(TokenKinds, EachHasARowThatItsNameFinds) {
  for (const auto kind : {VocabularyKind::sentencepiece_bpe, VocabularyKind::sentencepiece_unigram, VocabularyKind::byte_pair, VocabularyKind::pipeline}) {
    const TokenKind& row = token_kind(kind);
    EXPECT_EQ(row.kind, kind);
    EXPECT_EQ(find_token_kind(row.name), &row) << row.name;
  }
  EXPECT_EQ(find_token_kind("wordpiece"), nullptr);
  EXPECT_EQ(find_token_kind(""), nullptr);
}

// docs/formats/ztensor.md: files have these names.
TEST(TokenKinds, NamesAreThoseOfTheFiles) {
  EXPECT_EQ(kind_name(VocabularyKind::sentencepiece_bpe), "sentencepiece_bpe");
  EXPECT_EQ(kind_name(VocabularyKind::sentencepiece_unigram), "sentencepiece_unigram");
  EXPECT_EQ(kind_name(VocabularyKind::byte_pair), "byte_pair");
  EXPECT_EQ(kind_name(VocabularyKind::pipeline), "pipeline");
}

TEST(TokenKinds, AKindWithoutARowIsABug) { EXPECT_THROW(token_kind(static_cast<VocabularyKind>(99)), Error); }

TEST(TokenKinds, UnigramDecodesAndDoesNotEncode) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::sentencepiece_unigram;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("\u2581ab", -1, TokenType::normal);
  vocabulary.add("\u2581c", -2, TokenType::normal);
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, 2}), "ab c");
  try {
    (void)tokenizer.encode("ab c");
    FAIL() << "it encodes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("unigram"));
  }
}

}  // namespace
}  // namespace poise
