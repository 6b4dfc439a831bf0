// Tokenizer files that Poise writes: real tokenizers behave as before, and small files equal those written by hand.
#include "tokenizer/files/files.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/real_tokenizers.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/model.hpp"
#include "tokenizer/sentencepiece_bytes.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::map<std::string, std::string> by_name(const TokenizerFiles& written) {
  std::map<std::string, std::string> files;
  for (const TokenizerFile& file : written.files) files.emplace(file.name, file.bytes);
  return files;
}

Vocabulary read_again(const TokenizerFiles& written) {
  const support::TemporaryDirectory directory;
  for (const TokenizerFile& file : written.files) support::put(directory / file.name, file.bytes);
  return read_vocabulary(directory.path()).value();
}

class RealFiles : public testing::TestWithParam<const char*> {};

// The expected values are those of Hugging Face's library, for GGUF files those of llama.cpp.
TEST_P(RealFiles, BehaveAsBefore) {
  const auto real = support::real_tokenizer(GetParam());
  if (!real) GTEST_SKIP() << "the shared data are not there";
  const TokenizerFiles written = make_tokenizer_files(real->vocabulary);
  const Tokenizer tokenizer(read_again(written));
  EXPECT_GE(real->expected.size(), 35U);
  for (const support::ExpectedTokens& sample : real->expected) {
    EXPECT_EQ(tokenizer.encode(sample.text), sample.ids) << sample.text.substr(0, 200);
    EXPECT_EQ(tokenizer.encode_with_special(sample.text), sample.ids_special) << sample.text.substr(0, 200);
    EXPECT_EQ(tokenizer.decode(sample.ids, SpecialTokens::shown), sample.decoded) << sample.text.substr(0, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(TokenizerFiles, RealFiles,
                         testing::Values("gpt2", "qwen2_5", "mistral_nemo", "gemma2", "gguf/gpt-2", "gguf/falcon",
                                         "gguf/qwen2", "gguf/phi-3"));

Vocabulary sentencepiece() {
  Vocabulary vocabulary;
  vocabulary.unk_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<s>", 0, TokenType::bos);
  vocabulary.add("a", -1, TokenType::normal);
  vocabulary.add("b", -2, TokenType::unused);
  vocabulary.add("ab", -3.5F, TokenType::user_defined);
  return vocabulary;
}

TEST(TokenizerFiles, OfSentencePieceByteForByte) {
  const std::string minus_one = std::string(9, '\xff') + "\x01";
  const std::string trainer = varint_field(3, 2) + varint_field(4, 5) + varint_field(35, 0) + varint_field(40, 0) +
                              bytes_field(45, "<unk>") + varint_field(41, 1) + bytes_field(46, "<s>") + "\xd0\x02" +
                              minus_one + "\xd8\x02" + minus_one;
  const std::string normalizer =
      bytes_field(1, "identity") + varint_field(3, 1) + varint_field(4, 0) + varint_field(5, 1);
  EXPECT_EQ(format_sentencepiece(sentencepiece()), piece("<unk>", 2, 0) + piece("<s>", 3, 0) + piece("a", 1, -1) +
                                                       piece("b", 5, -2) + piece("ab", 4, -3.5F) +
                                                       bytes_field(2, trainer) + bytes_field(3, normalizer));
}

TEST(TokenizerFiles, OfSentencePieceAreReadTheSame) {
  Vocabulary vocabulary = sentencepiece();
  vocabulary.remove_extra_whitespaces = true;
  vocabulary.add_dummy_prefix = false;
  vocabulary.chat_template = "{{ x }}";
  const TokenizerFiles written = make_tokenizer_files(vocabulary);
  EXPECT_THAT(written.losses, IsEmpty());
  EXPECT_EQ(read_again(written), vocabulary);
}

TEST(TokenizerFiles, OfSentencePieceReportLosses) {
  Vocabulary vocabulary = sentencepiece();
  vocabulary.normalizer = "nmt_nfkc";
  EXPECT_THAT(make_tokenizer_files(vocabulary).losses, Contains(HasSubstr("without the normalizer nmt_nfkc")));
  Vocabulary other = sentencepiece();
  other.bos_id = 2;
  EXPECT_THAT(make_tokenizer_files(other).losses, Contains(HasSubstr("names one BOS, EOS and padding token each")));
  Vocabulary twice = sentencepiece();
  twice.add("a", 0, TokenType::normal);
  const TokenizerFiles written = make_tokenizer_files(twice);
  EXPECT_THAT(
      written.losses,
      Contains(HasSubstr(
          "tokenizer.model cannot be written for the vocabulary: SentencePiece model: piece 5: \"a\" appears twice")));
  EXPECT_THAT(written.losses, Contains(HasSubstr("tokenizer.json holds each text of a token once: token 5, which")));
  EXPECT_FALSE(by_name(written).contains("tokenizer.model"));
  EXPECT_TRUE(by_name(written).contains("tokenizer.json"));
}

// Tokens that tokenizer_config.json adds are found in texts, and are appended if they are new.
TEST(TokenizerFiles, AddTokensToSentencePiece) {
  Vocabulary vocabulary = sentencepiece();
  const auto token = [](std::uint64_t id, const char* text, bool special) {
    return Attributes{{"id", id},       {"content", text},     {"single_word", false}, {"lstrip", false},
                      {"rstrip", true}, {"normalized", false}, {"special", special}};
  };
  vocabulary.add("<end>", -1000, TokenType::control);
  vocabulary.pipeline.set("added_tokens", Value::Array{token(1, "<s>", true), token(5, "<end>", true)});
  const TokenizerFiles written = make_tokenizer_files(vocabulary);
  EXPECT_THAT(written.losses, IsEmpty());
  const Vocabulary reread = read_again(written);
  EXPECT_EQ(reread, vocabulary);
  EXPECT_THAT(Tokenizer(reread).encode("a<end>  ab<s>"), ElementsAre(0, 2, 5, 0, 4, 1));
}

Attributes config_of(const TokenizerFiles& written) {
  return parse_json(by_name(written).at("tokenizer_config.json"), "tokenizer_config.json").take<Attributes>();
}

// Returns a file as transformers writes it.
Attributes read_config() {
  return {{"add_bos_token", true},
          {"added_tokens_decoder", Attributes{{"1", Attributes{{"content", "<s>"}, {"lstrip", true}}},
                                              {"9", Attributes{{"content", "<no row>"}}}}},
          {"bos_token", Attributes{{"__type", "AddedToken"}, {"content", "<s>"}, {"lstrip", true}}},
          {"clean_up_tokenization_spaces", true},
          {"eos_token", nullptr},
          {"model_max_length", 4096},
          {"padding_side", "left"},
          {"tokenizer_class", "CodeLlamaTokenizer"}};
}

TEST(TokenizerConfig, KeepsWhatWasRead) {
  Vocabulary vocabulary = sentencepiece();
  vocabulary.max_length = 32;
  vocabulary.pipeline.set("added_tokens", Value::Array{Attributes{{"id", 1}, {"content", "<s>"}}});
  vocabulary.tokenizer_config = read_config();
  EXPECT_EQ(config_of(make_tokenizer_files(vocabulary)), read_config());
  EXPECT_THAT(find_config_besides_tokens(vocabulary).size(),
              4U);  // the keys on cleaning, length, side and class
  vocabulary.chat_template = "{{ x }}";
  EXPECT_EQ(*config_of(make_tokenizer_files(vocabulary)).find("chat_template"), Value("{{ x }}"));
}

TEST(TokenizerConfig, AgreesWithTheVocabulary) {
  Vocabulary vocabulary = sentencepiece();
  vocabulary.tokenizer_config = read_config();
  vocabulary.bos_id = -1;
  vocabulary.eos_id = 1;
  set_special_around(vocabulary, false, false);
  const Attributes written = config_of(make_tokenizer_files(vocabulary));
  EXPECT_EQ(written.find("bos_token"), nullptr);
  EXPECT_EQ(*written.find("eos_token"), Value("<s>"));
  EXPECT_EQ(*written.find("add_bos_token"), Value(false));
  EXPECT_EQ(written.find("added_tokens_decoder"), nullptr);  // only files of SentencePiece need it
  EXPECT_EQ(*written.find("clean_up_tokenization_spaces"), Value(true));
}

Vocabulary byte_pairs() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  for (const char* text : {"a", "b", "ab", "abab"}) vocabulary.add(text, 0, TokenType::normal);
  vocabulary.add("<s>", 0, TokenType::control);
  vocabulary.bos_id = 4;
  vocabulary.merges = {{"a", "b"}, {"ab", "ab"}, {"x", "y"}};
  const Attributes bos{{"SpecialToken", Attributes{{"id", "<s>"}, {"type_id", 0}}}};
  const Attributes text{{"Sequence", Attributes{{"id", "A"}, {"type_id", 0}}}};
  vocabulary.pipeline = {
      {"added_tokens", Value::Array{Attributes{{"id", 4}, {"content", "<s>"}, {"special", true}}}},
      {"model",
       Attributes{{"type", "BPE"}, {"skip_unknown_merges", true}, {"added_only", Value::Array{std::uint64_t{4}}}}},
      {"post_processor",
       Attributes{{"type", "TemplateProcessing"},
                  {"single", Value::Array{bos, text}},
                  {"special_tokens", Attributes{{"<s>", Attributes{{"id", "<s>"},
                                                                   {"ids", Value::Array{std::uint64_t{4}}},
                                                                   {"tokens", Value::Array{"<s>"}}}}}}}},
      {"elsewhere", 1}};
  return vocabulary;
}

// The file has all fields that Hugging Face's library requires, and no field that it does not accept.
TEST(TokenizerFiles, HaveAllFields) {
  std::vector<std::string> losses;
  const Value json = parse_json(format_tokenizer_json(byte_pairs(), losses), "written");
  EXPECT_THAT(losses, ElementsAre("tokenizer.json cannot hold the vocabulary's elsewhere"));
  EXPECT_EQ(json, parse_json(R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
      "normalizer": null, "pre_tokenizer": null,
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}},
        "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]},
      "decoder": null,
      "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3}, "merges": ["a b", "ab ab"]}})",
                             "expected"));
  const Value config = Value(make_tokenizer_config(byte_pairs()));
  EXPECT_EQ(*config.get_if<Attributes>()->find("add_bos_token"), Value(true));
  EXPECT_EQ(*config.get_if<Attributes>()->find("bos_token"), Value("<s>"));
}

TEST(TokenizerFiles, ListMergesThatFollowFromScores) {
  Vocabulary scored;
  scored.kind = VocabularyKind::pipeline;
  scored.pipeline = {{"model", Attributes{{"type", "BPE"}, {"merge_by_score", true}}}};
  const std::pair<const char*, float> tokens[] = {{"a", 0}, {"b", 0}, {"aa", -2}, {"aab", -1}, {"ab", -3}};
  for (const auto& [text, score] : tokens) scored.add(text, score, TokenType::normal);
  std::vector<std::string> losses;
  const std::string json = format_tokenizer_json(scored, losses);
  EXPECT_THAT(json, HasSubstr(R"("merges": ["aa b","a ab","a a","a b"])"));
}

// One token has the largest length that may merge, the other is one byte longer.
TEST(TokenizerFiles, ListMergesOfTokensUpToALength) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  vocabulary.pipeline = {{"model", Attributes{{"type", "BPE"}, {"merge_by_score", true}}}};
  const std::string longest(4095, 'a');
  for (const std::string& text : {std::string("a"), longest, longest + "a", longest + "aa"})
    vocabulary.add(text, 0, TokenType::normal);
  std::vector<std::string> losses;
  EXPECT_THAT(format_tokenizer_json(vocabulary, losses),
              testing::EndsWith(fmt::format("\"merges\": [\"{0} a\",\"a {0}\"]}}\n}}\n", longest)));
}

TEST(TokenizerFiles, HaveMergesOfTokensWithSpacesAsPairs) {
  Vocabulary vocabulary = byte_pairs();
  vocabulary.add(" ", 0, TokenType::normal);
  vocabulary.add(" a", 0, TokenType::normal);
  vocabulary.merges = {{" ", "a"}};
  std::vector<std::string> losses;
  EXPECT_THAT(format_tokenizer_json(vocabulary, losses), HasSubstr(R"("merges": [[" ","a"]])"));
}

TEST(TokenizerFiles, HaveEachTextOnce) {
  Vocabulary vocabulary = byte_pairs();
  vocabulary.pipeline.erase("elsewhere");
  vocabulary.add("ab", 0, TokenType::normal);
  std::vector<std::string> losses;
  EXPECT_THAT(format_tokenizer_json(vocabulary, losses), HasSubstr(R"("abab":3})"));
  EXPECT_THAT(losses,
              ElementsAre("tokenizer.json has each text once: 1 token with the text of another one is left out"));
}

TEST(TokenizerFiles, RefuseTokensThatJsonCannotHold) {
  Vocabulary vocabulary = byte_pairs();
  vocabulary.add("\xff", 0, TokenType::normal);
  const TokenizerFiles written = make_tokenizer_files(vocabulary);
  EXPECT_THAT(written.files, IsEmpty());
  EXPECT_THAT(
      written.losses,
      Contains(HasSubstr("tokenizer.json cannot be written for the vocabulary: tokenizer.json holds text in UTF-8")));
  Vocabulary tiny;
  tiny.kind = VocabularyKind::byte_pair;
  EXPECT_THAT(make_tokenizer_files(tiny).losses, ElementsAre(HasSubstr("Tiny Llama's kind")));
}

}  // namespace
}  // namespace poise
