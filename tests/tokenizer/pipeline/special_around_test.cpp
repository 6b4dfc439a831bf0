// The special tokens around a text, from tokenizer_config.json next to a tokenizer.model, and from GGUF.
#include "tokenizer/pipeline/special_around.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/sentencepiece/model.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Vocabulary sentencepiece() {
  Vocabulary vocabulary;
  vocabulary.unk_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  vocabulary.add_dummy_prefix = false;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<s>", 0, TokenType::bos);
  vocabulary.add("</s>", 0, TokenType::eos);
  vocabulary.add("a", -1, TokenType::normal);
  vocabulary.pipeline.set("added_tokens", find_gguf_added_tokens(vocabulary, {}));
  return vocabulary;
}

TEST(SpecialAround, IsBosByDefault) {
  const Vocabulary vocabulary = sentencepiece();
  EXPECT_EQ(find_special_around(vocabulary), (SpecialAround{{1}, {}}));
  EXPECT_THAT(Tokenizer(vocabulary).encode_with_special("a"), ElementsAre(1, 3));
  Vocabulary steps = vocabulary;
  steps.kind = VocabularyKind::pipeline;
  EXPECT_EQ(find_special_around(steps), SpecialAround());
}

TEST(SpecialAround, FollowsTheFlags) {
  for (const bool bos : {false, true}) {
    for (const bool eos : {false, true}) {
      Vocabulary vocabulary = sentencepiece();
      set_special_around(vocabulary, bos, eos);
      std::vector<TokenId> expected;
      if (bos) expected.push_back(1);
      expected.push_back(3);
      if (eos) expected.push_back(2);
      EXPECT_EQ(Tokenizer(vocabulary).encode_with_special("a"), expected);
      EXPECT_EQ(vocabulary.pipeline.find("post_processor") == nullptr, bos && !eos);  // the default
      const GgufForm form = make_gguf_form(vocabulary);
      EXPECT_THAT(form.losses, ElementsAre(HasSubstr("lacks tokens for bytes")));
      EXPECT_EQ(form.tokenizer->add_bos_token, bos);
      EXPECT_EQ(form.tokenizer->add_eos_token, eos);
      set_special_around(vocabulary, true, false);
      EXPECT_EQ(vocabulary, sentencepiece());
    }
  }
}

TEST(SpecialAround, IsInTokenizerConfig) {
  for (const bool bos : {false, true}) {
    for (const bool eos : {false, true}) {
      Vocabulary vocabulary = sentencepiece();
      set_special_around(vocabulary, bos, eos);
      const TokenizerFiles written = make_tokenizer_files(vocabulary);
      EXPECT_THAT(written.losses, IsEmpty());
      const support::TemporaryDirectory directory;
      for (const TokenizerFile& file : written.files)
        std::ofstream(directory / file.name, std::ios::binary) << file.bytes;
      EXPECT_EQ(read_vocabulary(directory.path()), vocabulary);
      // tokenizer.json has a step of its own for these tokens.
      const Tokenizer steps(*read_vocabulary(directory / "tokenizer.json"));
      EXPECT_EQ(steps.encode_with_special("a"), Tokenizer(vocabulary).encode_with_special("a"));
    }
  }
  const support::TemporaryDirectory directory;
  std::ofstream(directory / "tokenizer.model", std::ios::binary) << format_sentencepiece(sentencepiece());
  Vocabulary alone = sentencepiece();
  alone.pipeline = {};
  EXPECT_EQ(read_vocabulary(directory.path()), alone);
}

TEST(SpecialAround, MayBeMoreThanFilesHold) {
  Vocabulary vocabulary = sentencepiece();
  vocabulary.pipeline.set("post_processor", make_post_processor(vocabulary, {{1, 3}, {2, 2}}));
  EXPECT_THAT(Tokenizer(vocabulary).encode_with_special("a"), ElementsAre(1, 3, 3, 2, 2));
  EXPECT_THAT(make_tokenizer_files(vocabulary).losses, ElementsAre(HasSubstr("names one BOS and one EOS")));
  EXPECT_THAT(make_gguf_form(vocabulary).losses,
              ElementsAre(HasSubstr("in front of texts: 1, 3"), HasSubstr("after texts: 2, 2"),
                          HasSubstr("lacks tokens for bytes")));
  vocabulary.pipeline.set("post_processor", Attributes{{"type", "Nonsense"}});
  EXPECT_THROW(Tokenizer{vocabulary}, Error);
}

}  // namespace
}  // namespace poise
