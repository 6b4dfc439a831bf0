// GGUF's tokenizers: real ones compared with llama.cpp's.
#include "tokenizer/gguf/vocabulary.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>

#include "patterns/regex.hpp"
#include "support/directories.hpp"
#include "tokenizer/gguf/pre_tokenizers.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RealGguf : public testing::TestWithParam<const char*> {};

std::vector<TokenId> ids_of(const Attributes& expected, std::string_view key) {
  std::vector<TokenId> ids;
  for (const Value& id : *expected.get_if<Value::Array>(key))
    ids.push_back(static_cast<TokenId>(*id.get_if<std::uint64_t>()));
  return ids;
}

// The expected values are llama.cpp's (version 0.5.0), for 40 texts; texts on which the two programs differ are
// skipped.
TEST_P(RealGguf, DoesAsLlamaCpp) {
  const fs::path folder = shared_directory() / "data" / "tokenizers" / "gguf";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const auto vocabulary = make_vocabulary(open(folder / fmt::format("ggml-vocab-{}.gguf", GetParam())));
  ASSERT_TRUE(vocabulary);
  const Tokenizer tokenizer(*vocabulary);
  std::ifstream stream(folder / fmt::format("ggml-vocab-{}.expected.json", GetParam()), std::ios::binary);
  const Value expected = parse_json(std::string(std::istreambuf_iterator<char>(stream), {}), "expected.json");
  std::size_t texts = 0;
  for (const Value& item : *expected.get_if<Value::Array>()) {
    const Attributes& fields = *item.get_if<Attributes>();
    if (fields.find("disputed") != nullptr) continue;
    const std::string& text = *fields.get_if<std::string>("text");
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, ids_of(fields, "ids")) << text.substr(0, 200);
    EXPECT_EQ(tokenizer.encode_with_special(text), ids_of(fields, "ids_special")) << text.substr(0, 200);
    EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::shown), *fields.get_if<std::string>("decoded"))
        << text.substr(0, 200);
    ++texts;
  }
  EXPECT_GE(texts, 35U);
}

INSTANTIATE_TEST_SUITE_P(Gguf, RealGguf, testing::Values("gpt-2", "falcon", "qwen2", "phi-3"));

GgufTokenizer small() {
  GgufTokenizer gguf;
  gguf.model = "llama";
  gguf.tokens = {"<unk>",
                 "<s>",
                 "\xe2\x96\x81",
                 "a",
                 "b",
                 "ab",
                 "\xe2\x96\x81"
                 "ab"};
  gguf.scores = {0, 0, -4, -3, -2, -1, -0.5F};
  gguf.token_type = {2, 3, 1, 1, 1, 1, 1};
  gguf.bos_token_id = 1;
  gguf.unknown_token_id = 0;
  return gguf;
}

TEST(GgufVocabulary, LlamaMergesByScore) {
  const Tokenizer tokenizer(make_vocabulary(small()));
  EXPECT_THAT(tokenizer.encode("ab ba"), ElementsAre(6, 2, 4, 3));
  EXPECT_THAT(tokenizer.encode_with_special("ab"), ElementsAre(1, 6));
  EXPECT_THAT(tokenizer.encode("<s>ab"), ElementsAre(1, 6));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{6, 2, 4}), "ab b");
  GgufTokenizer plain = small();
  plain.add_space_prefix = false;
  plain.add_bos_token = false;
  const Tokenizer without(make_vocabulary(plain));
  EXPECT_THAT(without.encode_with_special("ab ab"), ElementsAre(5, 6));
}

// A file's setting for BOS counts, except with pre-tokenizers for which llama.cpp ignores it (src/llama-vocab.cpp,
// v0.5.0).
TEST(GgufVocabulary, PreTokenizersDecideWhetherThereIsABos) {
  const auto has_bos = [](const char* pre, std::optional<bool> said) {
    GgufTokenizer gguf;
    gguf.model = "gpt2";
    gguf.pre = pre;
    gguf.tokens = {"<s>", "a"};
    gguf.token_type = {3, 1};
    gguf.bos_token_id = 0;
    gguf.add_bos_token = said;
    return Tokenizer(make_vocabulary(gguf)).encode_with_special("a").front() == 0;
  };
  for (const char* pre : {"chameleon", "tekken", "llama-bpe"}) {
    EXPECT_TRUE(has_bos(pre, std::nullopt)) << pre;
    EXPECT_FALSE(has_bos(pre, false)) << pre;
  }
  EXPECT_FALSE(has_bos("gpt-2", std::nullopt));
  for (const char* pre : {"gemma4", "granite-embed-multi-311m"}) {
    EXPECT_TRUE(has_bos(pre, std::nullopt)) << pre;
    EXPECT_TRUE(has_bos(pre, false)) << pre;
  }
}

TEST(GgufVocabulary, BertFindsTheLongestPieces) {
  GgufTokenizer gguf;
  gguf.model = "bert";
  gguf.tokens = {"[UNK]", "[CLS]", "[SEP]", "\xe2\x96\x81un", "able", "\xe2\x96\x81!"};
  gguf.token_type = {3, 3, 3, 1, 1, 1};
  gguf.unknown_token_id = 0;
  gguf.cls_token_id = 1;
  gguf.seperator_token_id = 2;
  const Tokenizer tokenizer(make_vocabulary(gguf));
  EXPECT_THAT(tokenizer.encode_with_special("Unable! x"), ElementsAre(1, 3, 4, 5, 0, 2));
}

TEST(GgufVocabulary, RefusesUnknownAlgorithms) {
  const auto refusal = [](auto&& change) -> std::string {
    GgufTokenizer gguf = small();
    change(gguf);
    try {
      (void)make_vocabulary(gguf);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(refusal([](GgufTokenizer& gguf) { gguf.model = "rwkv"; }),
              HasSubstr("the algorithm \"rwkv\" is not known"));
  EXPECT_THAT(refusal([](GgufTokenizer& gguf) { gguf.scores.pop_back(); }),
              HasSubstr("scores: expected 7, one for each token, found 6"));
  EXPECT_THAT(refusal([](GgufTokenizer& gguf) { gguf.bos_token_id = 7; }),
              HasSubstr("has the id 7, but there are 7 tokens"));
  EXPECT_THAT(refusal([](GgufTokenizer& gguf) {
                gguf.model = "gpt2";
                gguf.pre = "nope";
              }),
              HasSubstr("the pre-tokenizer \"nope\" is not known"));
}

// PCRE2 accepts the expressions of every row.
TEST(GgufVocabulary, AllExpressionsCompile) {
  for (const char* name : {"default",
                           "gpt-2",
                           "starcoder",
                           "llama-bpe",
                           "jais-2",
                           "qwen2",
                           "qwen35",
                           "ufakzeka",
                           "seed-coder",
                           "exaone-moe",
                           "laguna",
                           "minicpm5",
                           "deepseek-llm",
                           "deepseek-coder",
                           "deepseek-v3",
                           "spark2_5",
                           "afmoe",
                           "falcon",
                           "bloom",
                           "viking",
                           "chameleon",
                           "tekken",
                           "gpt-4o",
                           "tiny_aya",
                           "youtu",
                           "kimi-k2",
                           "superbpe",
                           "bailingmoe",
                           "granite-embed-multi-97m",
                           "gemma4"}) {
    const GgufPreTokenizer* row = find_gguf_pre_tokenizer(name);
    ASSERT_NE(row, nullptr) << name;
    for (const std::string_view expression : row->expressions) EXPECT_NO_THROW(Regex(expression, name)) << name;
  }
}

}  // namespace
}  // namespace poise
