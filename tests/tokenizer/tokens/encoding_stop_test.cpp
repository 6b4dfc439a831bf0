#include "tokenizer/tokens/merge.hpp"

#include <thread>

#include <gtest/gtest.h>

#include <poise/tokenizer.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

Vocabulary make_vocabulary(VocabularyKind kind) {
  Vocabulary vocabulary;
  vocabulary.kind = kind;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  for (const char* text : {"\u2581", "a", "b", "ab"}) vocabulary.add(text, -1, TokenType::normal);
  if (kind == VocabularyKind::byte_pair) vocabulary.merges = {{"a", "b"}};
  if (kind == VocabularyKind::pipeline) {
    vocabulary.pipeline = {{"model", Attributes{{"type", "BPE"}, {"merges", Value::Array{}}, {"unk_token", "<unk>"}}}};
  }
  return vocabulary;
}

TEST(EncodingStop, EndsEncodingWithEachKindOfVocabulary) {
  std::stop_source source;
  source.request_stop();
  const std::stop_token stop = source.get_token();
  for (const auto kind : {VocabularyKind::sentencepiece_bpe, VocabularyKind::sentencepiece_unigram,
                          VocabularyKind::byte_pair, VocabularyKind::pipeline}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Tokenizer tokenizer(make_vocabulary(kind));
    const std::vector<TokenId> expected = tokenizer.encode("ab ab");
    {
      const EncodingStop stopped(stop);
      EXPECT_EQ(support::error_of([&] { (void)tokenizer.encode("ab ab"); }).kind(), ErrorKind::cancelled);
      {
        const std::stop_source later;
        const std::stop_token token = later.get_token();
        const EncodingStop inner(token);
        EXPECT_EQ(tokenizer.encode("ab ab"), expected);
      }
      {
        const std::stop_token never;
        const EncodingStop inner(never);
        EXPECT_THROW((void)tokenizer.encode("ab ab"), Error);
      }
      EXPECT_THROW((void)tokenizer.encode("ab ab"), Error);
      std::thread([&] { EXPECT_EQ(tokenizer.encode("ab ab"), expected) << "another thread"; }).join();
    }
    EXPECT_EQ(tokenizer.encode("ab ab"), expected);
  }
}

}  // namespace
}  // namespace poise
