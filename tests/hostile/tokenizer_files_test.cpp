// Breaks every rule of tokenizer files once. Reading them finds some faults, making a tokenizer others, and encoding
// finds texts that take too long. sentencepiece_test.cpp breaks SentencePiece's own file.
#include <chrono>
#include <fstream>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "support/directories.hpp"
#include "support/hostile_cases.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise::hostile {
namespace {

using Files = std::map<std::string, std::string>;
constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

struct TokenizerCase {
  std::string rule;
  Files files;
  ErrorKind kind;
  std::string names;  // a part of the message: the field and the problem
  std::string text = "ab";
};

Vocabulary read(const Files& files) {
  const support::TemporaryDirectory directory;
  for (const auto& [name, content] : files) std::ofstream(directory / name, std::ios::binary) << content;
  return read_vocabulary(directory.path()).value();
}

// Returns true if a model with these files runs. Expects that verify() agrees.
bool runs(const Files& files) {
  const support::TemporaryDirectory directory;
  put_small_model(directory.path());
  for (const auto& [name, content] : files) std::ofstream(directory / name, std::ios::binary) << content;
  return expect_run_and_verify_agree(directory.path());
}

void expect_broken(const std::vector<TokenizerCase>& cases) {
  for (const TokenizerCase& rule : cases) {
    SCOPED_TRACE(rule.rule);
    runs(rule.files);
    const auto begin = std::chrono::steady_clock::now();
    try {
      (void)Tokenizer(read(rule.files)).encode_with_special(rule.text);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), rule.kind) << error.what();
      EXPECT_THAT(error.message(), testing::HasSubstr(rule.names));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  }
}

constexpr std::string_view kModel = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

// Returns a tokenizer.json with that model and further keys.
Files json(std::string_view model, std::string_view more = "") {
  return {{"tokenizer.json", fmt::format(R"({{"model": {}{}}})", model, more)}};
}
Files with(std::string_view more) { return json(kModel, more); }
Files unigram(std::string_view vocab, std::string_view more = R"(, "unk_id": 0)") {
  return json(fmt::format(R"({{"type": "Unigram", "vocab": {}{}}})", vocab, more));
}
std::string nested(std::string_view list, std::string_view step, int depth) {
  std::string text(step);
  for (int i = 0; i < depth; ++i) text = fmt::format(R"({{"type": "Sequence", "{}": [{}]}})", list, text);
  return text;
}
std::string many(std::string_view item, int count) {
  std::string text(item);
  for (int i = 1; i < count; ++i) text += fmt::format(",{}", item);
  return text;
}
std::string split(std::string_view regex) {
  return fmt::format(R"(, "pre_tokenizer": {{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated"}})",
                     to_json(Value(regex)));
}

TEST(HostileTokenizerFiles, TheFilesAreSoundBeforeTheyAreBroken) {
  EXPECT_THAT(Tokenizer(read(with(""))).encode("ab"), testing::ElementsAre(2));
  EXPECT_THAT(Tokenizer(read(unigram(R"([["<unk>", 0], ["ab", -1]])"))).encode("ab"), testing::ElementsAre(1));
  EXPECT_THAT(Tokenizer(read(with(split("a+")))).encode("ab"), testing::ElementsAre(0, 1));
  EXPECT_TRUE(runs(with("")));
  EXPECT_TRUE(runs({}));
}

TEST(HostileTokenizerFiles, TokenizerJson) {
  expect_broken({
      {"the file is JSON", {{"tokenizer.json", "{\"model\": {"}}, kInvalid, "JSON: "},
      {"it is an object", {{"tokenizer.json", "[1]"}}, kInvalid, "JSON: expected an object"},
      {"nesting has an end",
       {{"tokenizer.json", "{\"x\": " + std::string(100, '[') + std::string(100, ']') + "}"}},
       kInvalid,
       "nested deeper than 64"},
      {"a key comes once",
       {{"tokenizer.json", R"({"model": {"vocab": {}}, "model": {"vocab": {}}})"}},
       kInvalid,
       "\"model\" appears twice"},
      {"there is a model",
       {{"tokenizer.json", R"({"added_tokens": []})"}},
       kInvalid,
       "model.vocab: expected the tokens"},
      {"a model is an object", {{"tokenizer.json", R"({"model": 3})"}}, kInvalid, "model: expected an object"},
      {"a model is known", json(R"({"type": "Magic", "vocab": {"a": 0}})"), kUnsupported,
       "model: the type \"Magic\" is not known"},
      {"a vocabulary is tokens", json(R"({"type": "BPE", "vocab": 3, "merges": []})"), kInvalid,
       "model.vocab: expected the tokens"},
      {"an id is a number", json(R"({"type": "BPE", "vocab": {"a": "0"}, "merges": []})"), kInvalid,
       "model.vocab: expected a token and its id"},
      {"an id is not negative", json(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), kInvalid,
       "model.vocab: expected a token and its id"},
      {"an id is whole", json(R"({"type": "BPE", "vocab": {"a": 0.5}, "merges": []})"), kInvalid,
       "model.vocab: expected a token and its id"},
      {"an id has bounds", json(R"({"type": "BPE", "vocab": {"a": 18446744073709551615}, "merges": []})"), kInvalid,
       "an id is 18446744073709551615"},
      {"ids go with the number of tokens", json(R"({"type": "BPE", "vocab": {"a": 400000}, "merges": []})"), kInvalid,
       "the id 400000 is far larger"},
      {"an id has one token", json(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})"), kInvalid,
       "two tokens have the id 0"},
      {"a token has one id", json(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "a": 2}, "merges": []})"), kInvalid,
       "\"a\" appears twice"},
      {"also where an added token has its text",
       json(R"({"type": "BPE", "vocab": {"a": 1, "a": 2}, "merges": []})",
            R"(, "added_tokens": [{"id": 0, "content": "a"}])"),
       kInvalid, "\"a\" appears twice"},
      {"merges are a list", json(R"({"type": "BPE", "vocab": {"a": 0}, "merges": {"a": 1}})"), kInvalid,
       "model.merges: expected a list"},
      {"a merge has two tokens", json(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})"), kInvalid,
       "model.merges: expected two tokens"},
      {"and no more", json(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a a"]})"), kInvalid,
       "model.merges: expected two tokens"},
      {"also as a pair", json(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a", "a"]]})"), kInvalid,
       "model.merges: expected two tokens"},
      {"its left is a token", json(R"({"type": "BPE", "vocab": {"a": 0, "xa": 1}, "merges": ["x a"]})"), kInvalid,
       "merges: \"x\" is not a token"},
      {"its right is a token", json(R"({"type": "BPE", "vocab": {"a": 0, "ax": 1}, "merges": ["a x"]})"), kInvalid,
       "merges: \"x\" is not a token"},
      {"it makes a token", json(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})"), kInvalid,
       "merges: \"aa\" is not a token"},
      {"its right has the prefix",
       json(R"({"type": "BPE", "continuing_subword_prefix": "##", "vocab": {"a": 0}, "merges": ["a a"]})"), kInvalid,
       "shorter than continuing_subword_prefix"},
      {"merges are not at random", json(R"({"type": "BPE", "dropout": 0.5, "vocab": {"a": 0}, "merges": []})"),
       kUnsupported, "dropout"},
  });
}

TEST(HostileTokenizerFiles, OtherModels) {
  expect_broken({
      {"a list has pairs", unigram(R"([["<unk>"]])"), kInvalid, "expected a token and its score"},
      {"a score is not a list", unigram(R"([["u", ["ab", -1.5]]])"), kInvalid, "expected a token and its score"},
      {"a score is a number", unigram(R"([["<unk>", "0"]])"), kInvalid, "expected a token and its score"},
      {"no number is NaN", unigram(R"([["<unk>", NaN]])"), kInvalid, "JSON: "},
      {"the unknown token is there", unigram(R"([["a", 0]])", R"(, "unk_id": 7)"), kInvalid,
       "unk_id: 7, but the vocabulary has 1 tokens"},
      {"or all characters are", unigram(R"([["a", 0]])", ""), kUnsupported, "no token for \"b\""},
      {"a word needs a token", json(R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "x"})"), kUnsupported,
       "a word of the text is not a token"},
      {"pieces need an unknown one", json(R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "x"})"), kInvalid,
       "unk_token: \"x\" is not a token"},
  });
}

TEST(HostileTokenizerFiles, AddedTokens) {
  expect_broken({
      {"they are a list", with(R"(, "added_tokens": 3)"), kInvalid, "added_tokens: expected a list"},
      {"of objects", with(R"(, "added_tokens": [3])"), kInvalid, "added_tokens: expected \"id\" and \"content\""},
      {"with ids", with(R"(, "added_tokens": [{"content": "x"}])"), kInvalid, "expected \"id\" and \"content\""},
      {"and texts", with(R"(, "added_tokens": [{"id": 3, "content": 3}])"), kInvalid,
       "expected \"id\" and \"content\""},
      {"an id has bounds", with(R"(, "added_tokens": [{"id": 18446744073709551615, "content": "x"}])"), kInvalid,
       "an id is 18446744073709551615"},
      {"flags are flags", with(R"(, "added_tokens": [{"id": 3, "content": "x", "lstrip": 1}])"), kInvalid,
       "lstrip: expected true or false"},
      {"a text is not too long",
       with(fmt::format(R"(, "added_tokens": [{{"id": 3, "content": "{}"}}])", std::string(2000, 'x'))), kUnsupported,
       "more than 1024 bytes"},
      {"nor what a normalizer makes of it",
       with(R"(, "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": ")" + std::string(600, 'y') +
            R"("}, "added_tokens": [{"id": 3, "content": "xx", "normalized": true}])"),
       kUnsupported, "more than 1024 bytes"},
  });
}

TEST(HostileTokenizerFiles, Steps) {
  expect_broken({
      {"a normalizer is an object", with(R"(, "normalizer": "NFC")"), kInvalid, "normalizer: expected an object"},
      {"of a known type", with(R"(, "normalizer": {"type": "Magic"})"), kUnsupported,
       "normalizer: the type \"Magic\" is not known"},
      {"normalizers are not nested forever",
       with(fmt::format(R"(, "normalizer": {})", nested("normalizers", R"({"type": "NFC"})", 40))), kInvalid,
       "nested deeper"},
      {"nor are they many",
       with(fmt::format(R"(, "normalizer": {{"type": "Sequence", "normalizers": [{}]}})",
                        many(R"({"type": "NFC"})", 300))),
       kUnsupported, "more than 256 steps"},
      {"they make a text no thousand times as long",
       with(fmt::format(R"(, "normalizer": {{"type": "Sequence", "normalizers": [{}]}})",
                        many(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"})", 12))),
       kUnsupported, "makes the text too long"},
      {"a charsmap is base64", with(R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"})"),
       kInvalid, "precompiled_charsmap: "},
      {"and is as long as it says",
       with(R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="})"), kInvalid,
       "precompiled_charsmap: "},
      {"a pattern is there", with(R"(, "pre_tokenizer": {"type": "Split", "behavior": "Isolated"})"), kInvalid,
       "pattern: is missing"},
      {"and is one", with(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"X": "a"}, "behavior": "Isolated"})"),
       kInvalid, "expected \"String\" or \"Regex\""},
      {"a behavior is known",
       with(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Eaten"})"), kInvalid,
       "behavior: expected"},
      {"an expression is one", with(split("(")), kInvalid, "the regular expression \"(\""},
      {"and not too long", with(split(std::string(70000, 'a'))), kInvalid, "more than 65536 bytes"},
      {"its classes are not nested forever", with(split(std::string(100, '[') + "a" + std::string(100, ']'))), kInvalid,
       "nested too deeply"},
      {"its groups are not, either", with(split(std::string(5000, '(') + "a" + std::string(5000, ')'))), kInvalid,
       "the regular expression"},
      {"pre-tokenizers are not many",
       with(fmt::format(R"(, "pre_tokenizer": {{"type": "Sequence", "pretokenizers": [{}]}})",
                        many(R"({"type": "Digits"})", 300))),
       kUnsupported, "more than 256 steps"},
      {"a length is not 0", with(R"(, "pre_tokenizer": {"type": "FixedLength", "length": 0})"), kInvalid,
       "length: is 0"},
      {"a delimiter is not empty", with(R"(, "pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": ""})"),
       kInvalid, "delimiter: is empty"},
      {"a scheme is known", with(R"(, "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "often"})"), kInvalid,
       "expected always, never or first"},
      {"special tokens have ids",
       with(
           R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}], "special_tokens": {}})"),
       kInvalid, "is not one of special_tokens"},
      {"that the vocabulary has",
       with(
           R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}],
               "special_tokens": {"x": {"ids": [99]}}})"),
       kInvalid, "expected the id of one of the 3 tokens"},
      {"a template has the text", with(R"(, "post_processor": {"type": "TemplateProcessing", "single": []})"), kInvalid,
       "the text's own tokens are missing"},
      {"once",
       with(
           R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}]})"),
       kInvalid, "expected one item with the id A, for the text's own tokens"},
      {"a decoder is known", with(R"(, "decoder": {"type": "Magic"})"), kUnsupported,
       "decoder: the type \"Magic\" is not known"},
      {"decoders are not many",
       with(fmt::format(R"(, "decoder": {{"type": "Sequence", "decoders": [{}]}})", many(R"({"type": "Fuse"})", 300))),
       kUnsupported, "more than 256 steps"},
  });
}

// On this text, such an expression backtracks nearly without end: only the letter at the end shows that
// there is no match.
TEST(HostileTokenizerFiles, ExpressionsThatHang) {
  const std::string letters = std::string(60, 'a') + "bc";
  expect_broken({
      {"repeated repetitions", with(split("(a+)+c")), kUnsupported, "cannot be matched in this text", letters},
      {"alternatives that are alike", with(split("(a|a|aa)+c")), kUnsupported, "cannot be matched in this text",
       letters},
      {"references back", with(split(R"((a*)*\1c)")), kUnsupported, "cannot be matched in this text", letters},
      {"one in a normalizer",
       with(R"(, "normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+c"}, "content": ""})"), kUnsupported,
       "cannot be matched in this text", letters},
  });
}

constexpr std::string_view kTekken =
    R"({"config": {"pattern": "a", "default_vocab_size": 2, "default_num_special_tokens": 1}, "vocab": [{"rank": 0, "token_bytes": "YQ=="}]})";

TEST(HostileTokenizerFiles, Tekken) {
  const auto tekken = [](std::string_view what, std::string_view instead) {
    std::string text(kTekken);
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return Files{{"tekken.json", text.replace(at, what.size(), instead)}};
  };
  EXPECT_EQ(read(tekken("\"a\"", "\"a\"")).size(), 2U);
  expect_broken({
      {"tokens are a list", tekken("[{\"rank\": 0, \"token_bytes\": \"YQ==\"}]", "3"), kInvalid,
       "vocab: expected a list"},
      {"in the order of their ranks", tekken("\"rank\": 0", "\"rank\": 1"), kInvalid, "expected a token of rank 0"},
      {"in base64", tekken("YQ==", "Y"), kInvalid, "token_bytes in base64"},
      {"as many as the file states", tekken("\"default_vocab_size\": 2", "\"default_vocab_size\": 9"), kInvalid,
       "default_vocab_size: 9, expected 1 to 2"},
      {"no number goes on for ever",
       tekken("\"default_vocab_size\": 2", "\"default_vocab_size\": 18446744073709551615"), kInvalid,
       "default_vocab_size: expected a number up to"},
      {"special tokens, too", tekken("special_tokens\": 1", "special_tokens\": 4000000"), kInvalid,
       "default_num_special_tokens: expected a number up to"},
      {"and they are not more",
       tekken("\"vocab\"",
              R"("special_tokens": [{"rank": 0, "token_str": "<s>"}, {"rank": 1, "token_str": "x"}], "vocab")"),
       kInvalid, "special_tokens: has 2 tokens, but config.default_num_special_tokens is 1"},
      {"nor in another order", tekken("\"vocab\"", R"("special_tokens": [{"rank": 1, "token_str": "<s>"}], "vocab")"),
       kInvalid, "expected the token of rank 0"},
      {"a pattern is text", tekken("\"pattern\": \"a\"", "\"pattern\": 3"), kInvalid, "config.pattern: expected text"},
      {"and an expression", tekken("\"pattern\": \"a\"", "\"pattern\": \"(\""), kInvalid, "the regular expression"},
  });
}

TEST(HostileTokenizerFiles, VocabJsonAndMerges) {
  const auto files = [](std::string_view vocab, std::string_view merges) {
    return Files{{"vocab.json", std::string(vocab)}, {"merges.txt", std::string(merges)}};
  };
  EXPECT_EQ(read(files(R"({"a": 0, "b": 1, "ab": 2})", "#version: 0.2\na b\n")).merges.size(), 1U);
  expect_broken({
      {"merges.txt is there", {{"vocab.json", R"({"a": 0})"}}, ErrorKind::not_found, ""},
      {"vocab.json is an object", files("[]", ""), kInvalid, "JSON: expected an object"},
      {"of ids", files(R"({"a": "b"})", ""), kInvalid, "expected a token and its id"},
      {"each once", files(R"({"a": 0, "b": 0})", ""), kInvalid, "two tokens have the id 0"},
      {"and each token once", files(R"({"a": 0, "a": 1})", ""), kInvalid, "\"a\" appears twice"},
      {"a line has two tokens", files(R"({"a": 0})", "a\n"), kInvalid, "line 1: expected two tokens"},
      {"and no more", files(R"({"a": 0})", "#version\na a a\n"), kInvalid, "line 2: expected two tokens"},
      {"that the vocabulary has", files(R"({"a": 0})", "a x\n"), kInvalid, "\"x\" is not a token"},
  });
}

TEST(HostileTokenizerFiles, TokenizerConfig) {
  const auto config = [](std::string_view text) {
    Files files = with("");
    files.emplace("tokenizer_config.json", text);
    return files;
  };
  expect_broken({
      {"it is JSON", config("{"), kInvalid, "JSON: "},
      {"it is an object", config("[]"), kInvalid, "JSON: expected an object"},
      {"a key comes once", config(R"({"bos_token": "a", "bos_token": "b"})"), kInvalid, "\"bos_token\" appears twice"},
  });
  // Values of the wrong kind, and values that name no token, have no effect.
  const Vocabulary vocabulary = read(
      config(R"({"bos_token": 3, "eos_token": "no such", "pad_token": {"content": 3}, "added_tokens_decoder": [1]})"));
  EXPECT_EQ(vocabulary.bos_id, -1);
  EXPECT_EQ(vocabulary.eos_id, -1);
}

GgufTokenizer small(const std::string& model) {
  GgufTokenizer gguf;
  gguf.model = model;
  gguf.pre = "default";
  gguf.tokens = {"<unk>", "a", "b", "ab"};
  gguf.scores = {0, -1, -2, -3};
  gguf.token_type = {2, 1, 1, 1};
  return gguf;
}

// Breaks GGUF's keys that hostile/gguf_test.cpp does not break.
TEST(HostileTokenizerFiles, Gguf) {
  struct Rule {
    std::string rule;
    std::string model;
    void (*change)(GgufTokenizer& gguf);
    ErrorKind kind;
    std::string names;
  };
  const std::vector<Rule> rules = {
      {"an algorithm is known", "llama", [](GgufTokenizer& g) { g.model = "magic"; }, kUnsupported,
       "the algorithm \"magic\" is not known"},
      {"a pre-tokenizer is known", "gpt2", [](GgufTokenizer& g) { g.pre = "magic"; }, kUnsupported,
       "the pre-tokenizer \"magic\" is not known"},
      {"there is a score for each token", "llama", [](GgufTokenizer& g) { g.scores.pop_back(); }, kInvalid,
       "scores: expected 4, one for each token, found 3"},
      {"and a type", "t5", [](GgufTokenizer& g) { g.token_type.push_back(1); }, kInvalid,
       "token_type: expected 4, one for each token, found 5"},
      {"ids are of tokens", "llama", [](GgufTokenizer& g) { g.eos_token_id = 4; }, kInvalid,
       "has the id 4, but there are 4 tokens"},
      {"and not negative", "llama", [](GgufTokenizer& g) { g.bos_token_id = -3; }, kInvalid, "has the id -3"},
      {"also of unknown ones", "bert", [](GgufTokenizer& g) { g.unknown_token_id = 9; }, kInvalid, "has the id 9"},
      {"BERT's are not guessed", "bert", [](GgufTokenizer&) {}, kInvalid,
       "unknown_token_id: expected the id of a token, because bert needs it"},
      {"its separator is a token", "bert",
       [](GgufTokenizer& g) {
         g.unknown_token_id = 0;
         g.cls_token_id = 1;
         g.seperator_token_id = 77;
       },
       kInvalid, "has the id 77"},
      {"a merge has two texts", "gpt2", [](GgufTokenizer& g) { g.merges = {"ab"}; }, kInvalid,
       "merges: \"ab\" has no space"},
      {"a charsmap is one", "t5", [](GgufTokenizer& g) { g.precompiled_charsmap = "\xff\xff\xff\xff"; }, kInvalid,
       "precompiled_charsmap: "},
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.rule);
    GgufTokenizer gguf = small(rule.model);
    rule.change(gguf);
    try {
      (void)Tokenizer(make_vocabulary(std::move(gguf)));
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), rule.kind) << error.what();
      EXPECT_THAT(error.message(), testing::HasSubstr(rule.names));
    }
  }
  // These are not faults: a score of NaN never wins, merges of other texts than tokens are ignored, malformed texts
  // match nothing.
  for (const char* model : {"llama", "t5", "gpt2"}) {
    SCOPED_TRACE(model);
    GgufTokenizer gguf = small(model);
    gguf.unknown_token_id = 0;
    gguf.scores[3] = std::numeric_limits<float>::quiet_NaN();
    gguf.merges = {"a x", "a b"};
    gguf.tokens.insert(gguf.tokens.end(), {"\xf0", "\xe2\x96", ""});
    gguf.scores.insert(gguf.scores.end(), {-1, -1, -1});
    gguf.token_type.insert(gguf.token_type.end(), {1, 4, 1});
    const Tokenizer tokenizer(make_vocabulary(std::move(gguf)));
    EXPECT_FALSE(tokenizer.encode("ab ab\xf0 \xe2\x96").empty());
  }
}

}  // namespace
}  // namespace poise::hostile
