// Vocabularies for models with fewer rows than they have tokens: no text gets an id without a row. For real
// vocabularies, the ids are those of other programs wherever these use no token that is left out.
#include "tokenizer/pipeline/steps.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/tokenizer.hpp>

#include "support/directories.hpp"
#include "support/real_tokenizers.hpp"
#include "tokenizer/pipeline/special_around.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kTokenizer = R"({
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "<": 3, ">": 4, "x": 5, "ab": 6, "bc": 7, "abc": 8, "abab": 9},
            "merges": ["a b", "ab c", "b c", "ab ab"]},
  "added_tokens": [{"id": 5, "content": "x", "special": true}, {"id": 10, "content": "<x>", "special": true}],
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<x>", "type_id": 0}}],
    "special_tokens": {"x": {"id": "x", "ids": [5], "tokens": ["x"]}, "<x>": {"id": "<x>", "ids": [10], "tokens": ["<x>"]}}}})";

Vocabulary steps() {
  const support::TemporaryDirectory directory;
  support::put(directory / "tokenizer.json", kTokenizer);
  Vocabulary vocabulary = read_vocabulary(directory.path()).value();
  vocabulary.bos_id = 5;
  vocabulary.eos_id = 10;
  return vocabulary;
}

TEST(FirstTokens, LeavesOutMergesOfMissingTokens) {
  const Tokenizer whole(steps());
  EXPECT_THAT(whole.encode_with_special("abc<x>abab"), ElementsAre(5, 8, 10, 9, 10));
  const Vocabulary left = keep_first_tokens(steps(), 8);
  EXPECT_EQ(left.size(), 8U);
  EXPECT_EQ(left.bos_id, 5);
  EXPECT_EQ(left.eos_id, -1);
  EXPECT_EQ(left.merges.size(), 2U);
  const Tokenizer tokenizer(left);
  EXPECT_THAT(tokenizer.encode_with_special("abc<x>abab"), ElementsAre(5, 6, 2, 3, 5, 4, 6, 6));
  // "a b" is gone, so that "b c" merges.
  EXPECT_THAT(Tokenizer(keep_first_tokens(steps(), 8)).encode("bc"), ElementsAre(7));
  EXPECT_THAT(Tokenizer(keep_first_tokens(steps(), 5)).encode("abx"), ElementsAre(0, 1)) << "there is no token for x";
  EXPECT_THAT(Tokenizer(keep_first_tokens(steps(), 5)).encode_with_special("ab"), ElementsAre(0, 1));
  EXPECT_EQ(keep_first_tokens(steps(), 11), steps());
  EXPECT_EQ(keep_first_tokens(steps(), 100), steps());
  EXPECT_EQ(keep_first_tokens(steps(), 0).size(), 0U);
}

// The second text of a merge has a prefix, which the merged token does not have.
TEST(FirstTokens, LeavesOutMergesWithAPrefix) {
  VocabularySettings settings;
  settings.kind = VocabularyKind::pipeline;
  settings.pipeline = {{"model", Attributes{{"type", "BPE"}, {"continuing_subword_prefix", "##"}}}};
  settings.merges = {{"##b", "##c"}, {"a", "##b"}};
  Vocabulary whole(settings);
  for (const char* text : {"a", "##b", "##c", "##bc", "ab"}) whole.add(text, 0, TokenType::normal);
  const Vocabulary left = keep_first_tokens(whole, 4);
  ASSERT_EQ(left.merges.size(), 1U);
  EXPECT_EQ(left.merges[0].first, "##b");
  EXPECT_EQ(left.pipeline, whole.pipeline);
  EXPECT_THAT(Tokenizer(whole).encode("ab"), ElementsAre(4));
  EXPECT_THAT(Tokenizer(left).encode("ab"), ElementsAre(0, 1));
}

TEST(FirstTokens, LeavesOutScoresOfUnigrams) {
  VocabularySettings settings;
  settings.kind = VocabularyKind::pipeline;
  settings.pipeline = {{"model", Attributes{{"type", "Unigram"}, {"scores", Value::Array{-1.1, -1.2, -0.3}}}}};
  Vocabulary whole(settings);
  for (const char* text : {"a", "b", "ab"}) whole.add(text, 0, TokenType::normal);
  EXPECT_THAT(Tokenizer(whole).encode("ab"), ElementsAre(2));
  EXPECT_THAT(Tokenizer(keep_first_tokens(whole, 2)).encode("ab"), ElementsAre(0, 1));
}

TEST(FirstTokens, LeavesOutTheUnknownTokenOfUnigrams) {
  VocabularySettings settings;
  settings.kind = VocabularyKind::pipeline;
  settings.pipeline = {
      {"model",
       Attributes{{"type", "Unigram"}, {"unk_id", std::uint64_t{2}}, {"scores", Value::Array{-1.1, -1.2, -0.3}}}}};
  Vocabulary whole(settings);
  for (const char* text : {"a", "b", "<unk>"}) whole.add(text, 0, TokenType::normal);
  EXPECT_THAT(Tokenizer(whole).encode("axb"), ElementsAre(0, 2, 1));
  EXPECT_THAT(Tokenizer(keep_first_tokens(whole, 2)).encode("ab"), ElementsAre(0, 1));
}

TEST(FirstTokens, OfSentencePiece) {
  const Vocabulary whole = read_vocabulary(source_directory() / "examples/nano-mistral/tokenizer.model").value();
  for (const std::size_t rows : {260U, 300U, 700U}) {
    const Tokenizer tokenizer(keep_first_tokens(whole, rows));
    const std::string text = "Once upon a time, there was a young penguin. \xE6\x97\xA5";
    const std::vector<TokenId> ids = tokenizer.encode_with_special(text);
    EXPECT_EQ(ids.front(), whole.bos_id);
    EXPECT_LT(static_cast<std::size_t>(*std::ranges::max_element(ids)), rows);
    if (rows == 700) {
      EXPECT_GT(*std::ranges::max_element(ids), 300);
    }
    // Letters and U+2581 are pieces with ids above 260; byte tokens replace them there. SentencePiece keeps a U+2581
    // that byte tokens form.
    std::string decoded = tokenizer.decode(ids);
    constexpr std::string_view kSpace = "\xE2\x96\x81";
    if (decoded.starts_with(kSpace)) decoded.erase(0, kSpace.size());
    for (std::size_t at = decoded.find(kSpace); at != std::string::npos; at = decoded.find(kSpace, at))
      decoded.replace(at, kSpace.size(), " ");
    EXPECT_EQ(decoded, text);
  }
}

TEST(FirstTokens, OfRealTokenizers) {
  std::size_t found = 0;
  for (const char* name : {"gpt2", "qwen2_5", "mistral_nemo", "gguf/llama-bpe", "gguf/qwen2", "gguf/phi-3"}) {
    SCOPED_TRACE(name);
    const auto real = support::real_tokenizer(name);
    if (!real) continue;
    ++found;
    const std::size_t rows = real->vocabulary.size() / 4 * 3;
    const Tokenizer tokenizer(keep_first_tokens(real->vocabulary, rows));
    std::size_t same = 0;
    for (const support::ExpectedTokens& text : real->expected) {
      const std::vector<TokenId> ids = tokenizer.encode(text.text);
      const auto has_row = [&](TokenId id) { return static_cast<std::size_t>(id) < rows; };
      EXPECT_TRUE(std::ranges::all_of(ids, has_row)) << text.text;
      if (!std::ranges::all_of(text.ids, has_row)) continue;
      EXPECT_EQ(ids, text.ids) << text.text;
      ++same;
    }
    EXPECT_GT(same, 2U);
    EXPECT_LT(same, real->expected.size());
  }
  if (found == 0) GTEST_SKIP() << "the shared tokenizers are not there";
}

}  // namespace
}  // namespace poise
