// Tokenizers of tokenizer.json: real ones compared with Hugging Face's library, and small ones for each rule.
#include "tokenizer/files/files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

SourcePtr source_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Source::from_memory({bytes.begin(), bytes.end()}, "tokenizer.json");
}

std::vector<TokenId> ids_of(const Attributes& expected, std::string_view key) {
  std::vector<TokenId> ids;
  for (const Value& id : *expected.get_if<Value::Array>(key))
    ids.push_back(static_cast<TokenId>(*id.get_if<std::uint64_t>()));
  return ids;
}

std::string text_of(const Attributes& expected, std::string_view key) { return *expected.get_if<std::string>(key); }

class RealTokenizer : public testing::TestWithParam<const char*> {};

// The expected values are those of Hugging Face's library (version 0.23.2), for 40 texts.
TEST_P(RealTokenizer, DoesAsHuggingFacesLibrary) {
  const fs::path folder = shared_directory() / "data" / "tokenizers" / GetParam();
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const auto vocabulary = read_vocabulary(folder);
  ASSERT_TRUE(vocabulary);
  const Tokenizer tokenizer(*vocabulary);
  const Value expected = parse_json(content_of(folder / "expected.json"), "expected.json");
  std::size_t texts = 0;
  for (const Value& item : *expected.get_if<Value::Array>()) {
    const Attributes& fields = *item.get_if<Attributes>();
    const std::string text = text_of(fields, "text");
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, ids_of(fields, "ids")) << text.substr(0, 200);
    EXPECT_EQ(tokenizer.encode_with_special(text), ids_of(fields, "ids_special")) << text.substr(0, 200);
    EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::shown), text_of(fields, "decoded")) << text.substr(0, 200);
    ++texts;
  }
  EXPECT_EQ(texts, 40U);
}

INSTANTIATE_TEST_SUITE_P(TokenizerJson, RealTokenizer, testing::Values("gpt2", "qwen2_5", "mistral_nemo", "gemma2"));

// Returns {"a": 0, "b": 1, ...}.
std::string vocab(const std::vector<std::string>& tokens) {
  std::string json;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    json += fmt::format("{}{}: {}", id == 0 ? "" : ", ", to_json(tokens[id]), id);
  return "{" + json + "}";
}

Tokenizer tokenizer_of(const std::string& json) { return Tokenizer(read_tokenizer_json(*source_of(json))); }

std::string bpe(const std::vector<std::string>& tokens, std::string_view merges, std::string_view rest = "",
                std::string_view options = "") {
  return fmt::format(R"({{"model": {{"type": "BPE", "vocab": {}, "merges": {}{}}}{}}})", vocab(tokens), merges, options,
                     rest);
}

TEST(TokenizerJson, MergesAreLinesOrPairs) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc"};
  for (const char* merges : {R"(["a b", "ab c"])", R"([["a", "b"], ["ab", "c"]])"}) {
    const Tokenizer tokenizer = tokenizer_of(bpe(tokens, merges));
    EXPECT_THAT(tokenizer.encode("abcab"), ElementsAre(4, 3));
    EXPECT_THAT(tokenizer.encode("cba"), ElementsAre(2, 1, 0));
  }
}

// The lowest rank goes first, of equal ones the leftmost.
TEST(TokenizerJson, MergesGoByRank) {
  const Tokenizer tokenizer = tokenizer_of(bpe({"a", "b", "ab", "ba", "aa"}, R"(["b a", "a b", "a a"])"));
  EXPECT_THAT(tokenizer.encode("abab"), ElementsAre(0, 3, 1));
  EXPECT_THAT(tokenizer.encode("aaa"), ElementsAre(4, 0));
}

// A word of many symbols is merged by another loop.
TEST(TokenizerJson, LongWordsMergeAsShortOnes) {
  const Tokenizer tokenizer = tokenizer_of(bpe({"a", "aa", "aaaa", "b"}, R"(["a a", "aa aa"])"));
  for (const std::size_t size : {1U, 2U, 7U, 47U, 48U, 49U, 1000U, 1'000'003U}) {
    std::vector<TokenId> expected(size / 4, 2);
    if (size % 4 >= 2) expected.push_back(1);
    if (size % 2 == 1) expected.push_back(0);
    EXPECT_EQ(tokenizer.encode(std::string(size, 'a')), expected) << size;
  }
}

TEST(TokenizerJson, IgnoreMergesTakesWholeWords) {
  const std::vector<std::string> tokens = {"a", "b", "c", "abc", "bc"};
  EXPECT_THAT(tokenizer_of(bpe(tokens, R"(["b c"])", "", R"(, "ignore_merges": true)")).encode("abc"), ElementsAre(3));
  EXPECT_THAT(tokenizer_of(bpe(tokens, R"(["b c"])")).encode("abc"), ElementsAre(0, 4));
}

TEST(TokenizerJson, UnknownCharactersAreFusedOrNot) {
  const std::vector<std::string> tokens = {"<unk>", "a"};
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]", "", R"(, "unk_token": "<unk>", "fuse_unk": true)")).encode("axya"),
              ElementsAre(1, 0, 1));
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]", "", R"(, "unk_token": "<unk>")")).encode("axya"), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]")).encode("axya"), ElementsAre(1, 1));
}

// The expected ids are those of Hugging Face's library (version 0.23.2): with tokens for the bytes of e-acute alone, an
// unknown character comes after the bytes that follow it.
TEST(TokenizerJson, BytesGoInFrontOfAnUnknownCharacter) {
  const std::vector<std::string> tokens = {"<unk>", "a", "b", "<0xC3>", "<0xA9>", "<unk>a"};
  const auto ids = [&](const char* fuse, std::string_view text) {
    return tokenizer_of(bpe(tokens, R"(["<unk> a"])", "",
                            fmt::format(R"(, "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": {})", fuse)))
        .encode(text);
  };
  EXPECT_THAT(ids("false", "xé"), ElementsAre(3, 4, 0));
  EXPECT_THAT(ids("false", "xéxa"), ElementsAre(3, 4, 0, 5));
  EXPECT_THAT(ids("false", "xyéxyb"), ElementsAre(0, 3, 4, 0, 0, 0, 2));
  EXPECT_THAT(ids("true", "xyéxyb"), ElementsAre(3, 4, 0, 2));
  EXPECT_THAT(ids("true", "aéxéb"), ElementsAre(1, 3, 4, 3, 4, 0, 2));
}

// As in the library, a line that names the version of merges.txt is not a merge, but a list of two tokens always is.
TEST(TokenizerJson, AVersionAmongMergesIsSkipped) {
  const std::vector<std::string> tokens = {"a", "b", "ab", "#version", "#versiona"};
  EXPECT_THAT(tokenizer_of(bpe(tokens, R"(["#version: 0.2", "a b"])")).encode("ab"), ElementsAre(2));
  EXPECT_EQ(read_tokenizer_json(*source_of(bpe(tokens, R"(["#version a", "a b"])"))).merges.size(), 1U);
  const Vocabulary lists = read_tokenizer_json(*source_of(bpe(tokens, R"([["#version", "a"]])")));
  EXPECT_EQ(lists.merges.size(), 1U);
  std::vector<std::string> losses;
  EXPECT_THAT(format_tokenizer_json(lists, losses), HasSubstr(R"("merges": [["#version","a"]])"));
}

// As in the library, the empty text matches between all characters.
TEST(TokenizerJson, AnEmptyPatternIsBetweenAllCharacters) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "-"};
  for (const char* behavior : {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}) {
    const std::string split =
        fmt::format(R"("pre_tokenizer": {{"type": "Split", "pattern": {{"String": ""}}, "behavior": "{}"}})", behavior);
    EXPECT_THAT(tokenizer_of(bpe(tokens, R"(["a b"])", ", " + split)).encode("abc"), ElementsAre(0, 1, 2)) << behavior;
  }
  const char* const replace = R"(, "normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "-"})";
  EXPECT_THAT(tokenizer_of(bpe(tokens, R"(["a b"])", replace)).encode("ab"), ElementsAre(4, 0, 4, 1, 4));
}

// The expected ids are those of Hugging Face's library (version 0.23.2). A repeated piece has the id and the score of
// its last entry.
TEST(TokenizerJson, APieceOfUnigramMayComeTwice) {
  const auto ids = [](const std::string& more, std::string_view text) {
    return tokenizer_of(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -5], ["b", -5],
                        ["c", -5], ["ab", -1], ["abc", -7], )" +
                        more + "]}}")
        .encode(text);
  };
  EXPECT_THAT(ids(R"(["ab", -50])", "ab"), ElementsAre(1, 2));
  EXPECT_THAT(ids(R"(["ab", -50])", "abc"), ElementsAre(5));
  EXPECT_THAT(ids(R"(["ab", -0.5])", "ab"), ElementsAre(6));
}

// If a character vanishes, the characters on both sides become neighbours, also in long pieces.
TEST(TokenizerJson, NeighboursOfAVanishedCharacterMerge) {
  const Tokenizer tokenizer = tokenizer_of(bpe({"a", "b", "ab", "-"}, R"(["a b"])"));
  EXPECT_THAT(tokenizer.encode("a<b"), ElementsAre(2));
  EXPECT_EQ(tokenizer.encode(std::string(100, '-') + "a<b").back(), 2);
}

// A Metaspace of the scheme "first" marks pieces at the beginning of the text, also after steps that add, remove and
// cut. Expected tokens are those of Hugging Face's tokenizers 0.23.2.
TEST(TokenizerJson, MetaspaceMarksPiecesThatBeginTheText) {
  const Value texts = parse_json(R"(["ab c", " ab", "\u00e9b", "aab", "a b", "\u0301ab", "  b", "\ufb01b", "_ab",
   "ba"])",
                                 "texts");
  const Value characters = parse_json(R"(["_", "a", "b", "c", "e", "f", "i", "x", "y", "\u00a9", "\u00ac", "\u00c3",
   "\u00cc", "\u00e9", "\u00ef", "\u0120", "\u0123", "\u0301", "\u2581", "\ufb01"])",
                                      "characters");
  const Value cases = parse_json(R"([
 [{"type": "ByteLevel"},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "\u2581ab\u0120c", "\u2581\u0120ab", "\u2581\u00c3\u00a9b", "\u2581aab", "\u2581a\u0120b", "\u2581\u00cc\u0123ab",
   "\u2581\u0120\u0120b", "\u2581\u00ef\u00ac\u0123b", "\u2581_ab", "\u2581ba"],
 [{"type": "Prepend", "prepend": "x"},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "\u2581xab\u2581c", "\u2581x\u2581ab", "\u2581x\u00e9b", "\u2581xaab", "\u2581xa\u2581b", "\u2581x\u0301ab",
   "\u2581x\u2581\u2581b", "\u2581x\ufb01b", "\u2581x_ab", "\u2581xba"],
 [{"type": "Replace", "pattern": {"String": "a"}, "content": ""},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "b\u2581c", "\u2581b", "\u2581\u00e9b", "b", "\u2581b", "\u2581\u0301b", "\u2581\u2581b", "\u2581\ufb01b",
   "\u2581_b", "\u2581b"],
 [{"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": ""},
  {"type": "Prepend", "prepend": "x"}]},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "xb\u2581c", "\u2581x\u2581b", "\u2581x\u00e9b", "xb", "x\u2581b", "\u2581x\u0301b", "\u2581x\u2581\u2581b",
   "\u2581x\ufb01b", "\u2581x_b", "\u2581xb"],
 [{"type": "Replace", "pattern": {"String": "ab"}, "content": "xy"},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "xy\u2581c", "\u2581xy", "\u2581\u00e9b", "\u2581axy", "\u2581a\u2581b", "\u2581\u0301xy", "\u2581\u2581b",
   "\u2581\ufb01b", "\u2581_xy", "\u2581ba"],
 [{"type": "Strip", "strip_left": true, "strip_right": false},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "\u2581ab\u2581c", "ab", "\u2581\u00e9b", "\u2581aab", "\u2581a\u2581b", "\u2581\u0301ab", "b", "\u2581\ufb01b",
   "\u2581_ab", "\u2581ba"],
 [{"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "\u2581ab\u2581c", "\u2581ab", "\u2581eb", "\u2581aab", "\u2581a\u2581b", "ab", "\u2581\u2581b", "\u2581\ufb01b",
   "\u2581_ab", "\u2581ba"],
 [{"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": ""},
  {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"}]},
  {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "\u2581xb\u2581c", "\u2581x\u2581b", "\u2581x\u00e9b", "\u2581xb", "\u2581x\u2581b", "\u2581x\u0301b",
   "\u2581x\u2581\u2581b", "\u2581x\ufb01b", "\u2581x_b", "\u2581xb"],
 [null,
  {"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "_", "prepend_scheme": "first",
   "split": true}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]},
  "\u2581_ab_c", "\u2581_ab", "\u2581_\u00e9b", "\u2581_aab", "\u2581_a_b", "\u2581_\u0301ab", "\u2581__b",
   "\u2581_\ufb01b", "\u2581_ab", "\u2581_ba"],
 [null,
  {"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "_", "prepend_scheme": "always",
   "split": true}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]},
  "\u2581_ab_c", "\u2581_ab", "\u2581_\u00e9b", "\u2581_aab", "\u2581_a_b", "\u2581_\u0301ab", "\u2581__b",
   "\u2581_\ufb01b", "\u2581_ab", "\u2581_ba"],
 [null,
  {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
   "use_regex": false}, {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false},
   {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]},
  "\u2581\u0120\u2581ab\u0120c", "\u2581\u0120ab", "\u2581\u0120\u2581\u00c3\u2581\u00a9b", "\u2581\u0120\u2581aab",
   "\u2581\u0120\u2581a\u0120b", "\u2581\u0120\u2581\u00cc\u2581\u0123ab", "\u2581\u0120\u0120b",
   "\u2581\u0120\u2581\u00ef\u2581\u00ac\u2581\u0123b", "\u2581\u0120\u2581_ab", "\u2581\u0120\u2581ba"],
 [{"type": "Sequence", "normalizers": [{"type": "NFKD"}]},
  {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated",
   "invert": false}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]},
  "\u2581ab\u2581c", "\u2581ab", "\u2581e\u2581\u0301b", "\u2581aab", "\u2581a\u2581b", "\u2581\u0301ab",
   "\u2581\u2581b", "\u2581f\u2581ib", "\u2581_ab", "\u2581ba"]
])",
                                 "cases");
  std::vector<std::string> tokens;
  for (const Value& character : *characters.get_if<Value::Array>()) tokens.push_back(*character.get_if<std::string>());
  for (const Value& test_case : *cases.get_if<Value::Array>()) {
    const Value::Array& row = *test_case.get_if<Value::Array>();
    SCOPED_TRACE(to_json(row[0]) + to_json(row[1]));
    const Tokenizer tokenizer = tokenizer_of(
        bpe(tokens, "[]", fmt::format(R"(, "normalizer": {}, "pre_tokenizer": {})", to_json(row[0]), to_json(row[1]))));
    for (std::size_t i = 0; i < texts.get_if<Value::Array>()->size(); ++i) {
      std::string pieces;
      for (const TokenId id : tokenizer.encode(*(*texts.get_if<Value::Array>())[i].get_if<std::string>()))
        pieces += tokens[static_cast<std::size_t>(id)];
      EXPECT_EQ(pieces, *row[2 + i].get_if<std::string>()) << i;
    }
  }
}

// The longest at the leftmost place; lstrip and rstrip consume white space, single_word needs word boundaries.
TEST(TokenizerJson, AddedTokensAreFoundInTheText) {
  const auto added = [](std::string_view flags, std::string_view content = "<x>") {
    return fmt::format(
        R"(, "added_tokens": [{{"id": 3, "content": "{}", "special": true, "normalized": false{}}}, {{"id": 4, "content": "<x>y", "normalized": false}}])",
        content, flags);
  };
  const std::vector<std::string> tokens = {"a", " ", "b"};
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]", added(""))).encode("a <x> <x>y b"), ElementsAre(0, 1, 3, 1, 4, 1, 2));
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]", added(R"(, "lstrip": true)"))).encode("a  <x> b"),
              ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(tokenizer_of(bpe(tokens, "[]", added(R"(, "rstrip": true)"))).encode("a <x>  b"),
              ElementsAre(0, 1, 3, 2));
  const Tokenizer word =
      tokenizer_of(bpe({"a", " ", "b", "x"}, "[]",
                       R"(, "added_tokens": [{"id": 4, "content": "ab", "single_word": true, "normalized": false}])"));
  EXPECT_THAT(word.encode("ab aba ab"), ElementsAre(4, 1, 0, 2, 0, 1, 4));
  EXPECT_EQ(word.decode(std::vector<TokenId>{4, 1}, SpecialTokens::shown), "ab  ");
}

// White space that one token consumes may contain the next token. Expected ids are those of Hugging Face's tokenizers
// 0.23.2.
TEST(TokenizerJson, AddedTokensMayBeWhiteSpaceThatAnotherTakes) {
  const auto encode = [](std::string_view flags, std::string_view text) {
    const std::string added =
        fmt::format(R"(, "added_tokens": [{{"id": 3, "content": "\n\n", "normalized": false, "rstrip": true}},
                                                               {{"id": 4, "content": "  ", "normalized": false{}}}])",
                    flags);
    return tokenizer_of(bpe({"a", " ", "b"}, "[]", added)).encode(text);
  };
  EXPECT_THAT(encode("", "a\n\n\n\n b"), ElementsAre(0, 3, 3, 2));
  EXPECT_THAT(encode("", "a\n\n   b"), ElementsAre(0, 3, 4, 1, 2));
  EXPECT_THAT(encode(R"(, "rstrip": true)", "a     b"), ElementsAre(0, 4, 4, 2));
  EXPECT_THAT(encode(R"(, "lstrip": true, "rstrip": true)", "a     b"), ElementsAre(0, 4, 2));
}

// Hugging Face's tokenizers 0.23.2 gives the normalized text of a token that is looked for in the normalized text.
TEST(TokenizerJson, TokensOfNormalizedTextsDecodeToNormalizedTexts) {
  const Tokenizer tokenizer =
      tokenizer_of(bpe({"a"}, "[]", R"(, "normalizer": {"type": "Prepend", "prepend": "_"}, "decoder": {"type": "Fuse"},
      "added_tokens": [{"id": 1, "content": "<x>", "normalized": true}, {"id": 2, "content": "<y>", "normalized": false}])"));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, 2, 0}, SpecialTokens::shown), "_<x><y>a");
  EXPECT_EQ(tokenizer.piece(1), "<x>");
}

// Each longest run that begins a character becomes one U+FFFD (the Unicode Standard, section 3.9, table 3-8).
TEST(TokenizerJson, InvalidBytesAreReplacedAsUnicodeRecommends) {
  const Tokenizer tokenizer = tokenizer_of(
      bpe({"a", "\xc3\xb9", "\xc3\xbf", "\xc4\xb1", "\xc3\xb3"}, "[]", R"(, "decoder": {"type": "ByteLevel"})"));
  const std::string replaced = "\xef\xbf\xbd";  // bytes f9 ff 8f f3
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, 2, 3, 4}, SpecialTokens::shown),
            replaced + replaced + replaced + replaced);
}

// Expected pieces are those of Hugging Face's tokenizers 0.23.2.
TEST(TokenizerJson, UnicodeScriptsCutsBetweenScripts) {
  const Tokenizer tokenizer =
      tokenizer_of(R"({"pre_tokenizer": {"type": "UnicodeScripts"}, "model": {"type": "WordLevel", "unk_token": "?",
      "vocab": {"?": 0, "ab  ": 1, "\u03b1": 2, "\u304b\u30fc\u6f22 ": 3, "1, ": 4, "e\u0301": 5, "e": 6, "\u0301": 7}}})");
  EXPECT_THAT(tokenizer.encode("  ab  \xce\xb1\xe3\x81\x8b\xe3\x83\xbc\xe6\xbc\xa2 1, e\xcc\x81"),
              ElementsAre(1, 2, 3, 4, 6, 7));
}

TEST(TokenizerJson, SpecialTokensAreHiddenUnlessWanted) {
  const Tokenizer tokenizer = tokenizer_of(bpe(
      {"a", "b"}, "[]", R"(, "decoder": {"type": "Fuse"}, "added_tokens": [{"id": 2, "content": "<s>", "special": true},
    {"id": 3, "content": "<t>", "special": false}])"));
  const std::vector<TokenId> ids = {2, 0, 3, 1};
  EXPECT_EQ(tokenizer.decode(ids), "a<t>b");
  EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::shown), "<s>a<t>b");
  EXPECT_EQ(tokenizer.vocabulary().type(2), TokenType::control);
  EXPECT_EQ(tokenizer.vocabulary().type(3), TokenType::user_defined);
}

// Steps that each double a letter could make a text of any length from one letter.
TEST(TokenizerJson, ADecoderHasALimitOnGrowth) {
  std::string steps;
  for (int i = 0; i < 60; ++i)
    steps +=
        fmt::format(R"({}{{"type": "Replace", "pattern": {{"String": "a"}}, "content": "aa"}})", i == 0 ? "" : ", ");
  const Tokenizer tokenizer =
      tokenizer_of(bpe({"a"}, "[]", R"(, "decoder": {"type": "Sequence", "decoders": [)" + steps + "]}"));
  const std::vector<TokenId> ids = {0};
  const Error error = support::error_of([&] { tokenizer.decode(ids); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.message(), testing::HasSubstr("Replace makes a text longer by more than 16777216 bytes"));
}

// A token at a time gives the same text as all at once.
TEST(TokenizerJson, StreamsAgreeWithDecode) {
  const Tokenizer tokenizer = tokenizer_of(bpe({"<0xE2>", "<0x82>", "<0xAC>", "\xe2\x96\x81", "a", "b"}, "[]",
                                               R"(, "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                                               R"(, "byte_fallback": true)"));
  const std::vector<TokenId> ids = {3, 4, 3, 0, 1, 2, 5, 0, 1, 3, 2};
  TextStream stream(tokenizer);
  std::string text;
  for (const TokenId id : ids) text += stream.add(id);
  text += stream.finish();
  EXPECT_EQ(text,
            "a \xe2\x82\xac"
            "b\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd");
  EXPECT_EQ(tokenizer.decode(ids), text);
}

std::string refusal(const std::string& json, std::string_view text = "a") {
  try {
    (void)tokenizer_of(json).encode(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

// The library reads with serde, which accepts keys in any order.
TEST(TokenizerJson, IsRecognizedByKeysInAnyOrder) {
  const std::string many(5000, ' ');
  EXPECT_TRUE(looks_like_tokenizer_json(*source_of(R"({"version": "1.0", "added_tokens": [])" + many + "}")));
  EXPECT_TRUE(looks_like_tokenizer_json(
      *source_of(R"({"model": {"type": "BPE", "vocab": {"a": 0},)" + many + R"("merges": []}, "added_tokens": []})")));
  EXPECT_TRUE(looks_like_tokenizer_json(
      *source_of(R"({"model": {"merges": [],)" + many + R"("vocab": {}}, "added_tokens": []})")));
  EXPECT_FALSE(looks_like_tokenizer_json(*source_of(R"({"model_type": "llama", "vocab_size": 7})")));
  EXPECT_FALSE(looks_like_tokenizer_json(*source_of(R"(["model", "vocab"])")));
}

TEST(TokenizerJson, RefusesContradictions) {
  EXPECT_THAT(refusal("[]"), HasSubstr("JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("model.vocab: expected the tokens"));
  EXPECT_THAT(refusal(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})"),
              HasSubstr("two tokens have the id 0"));
  EXPECT_THAT(refusal(R"({"model": {"type": "BPE", "vocab": {"a": 400000}, "merges": []}})"),
              HasSubstr("far larger than the number of tokens"));
  EXPECT_THAT(refusal(R"({"model": {"type": "BPE", "vocab": {"a": 18446744073709551615}, "merges": []}})"),
              HasSubstr("at most 500000 tokens"));
  EXPECT_THAT(refusal(bpe({"a"}, R"(["a b"])")), HasSubstr("\"b\" is not a token"));
  EXPECT_THAT(refusal(bpe({"a"}, R"(["ab"])")), HasSubstr("expected two tokens with a space between them"));
  EXPECT_THAT(refusal(bpe({"a"}, "[]", R"(, "normalizer": {"type": "Nope"})")),
              HasSubstr("normalizer: the type \"Nope\" is not known"));
  EXPECT_THAT(
      refusal(bpe({"a"}, "[]", R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend"}]})")),
      HasSubstr("normalizer.normalizers[0].prepend: is missing"));
  EXPECT_THAT(
      refusal(bpe({"a"}, "[]",
                  R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})")),
      HasSubstr("pre_tokenizer.pattern: the regular expression \"(a\""));
  EXPECT_THAT(refusal(bpe({"a"}, "[]", R"(, "added_tokens": [{"id": "x", "content": "y"}])")),
              HasSubstr("added_tokens"));
  EXPECT_THAT(
      refusal(bpe({"a"}, "[]", R"(, "post_processor": {"type": "BertProcessing", "cls": ["x", 7], "sep": ["y", 0]})")),
      HasSubstr("post_processor.cls: expected the id of one of the 1 tokens"));
}

// Without limits, these expressions would take forever, and these texts would grow forever.
TEST(TokenizerJson, BoundsTheCostOfHostileFiles) {
  const auto split = [](std::string_view regex) {
    return bpe(
        {"a"}, "[]",
        fmt::format(R"(, "pre_tokenizer": {{"type": "Split", "pattern": {{"Regex": "{}"}}, "behavior": "Isolated"}})",
                    regex));
  };
  EXPECT_THAT(refusal(split("(a+)+[bc]"), std::string(64, 'a')), HasSubstr("cannot be matched in this text"));
  std::string steps = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"})";
  std::string all = steps;
  for (int i = 0; i < 20; ++i) all += ", " + steps;
  EXPECT_THAT(
      refusal(bpe({"a"}, "[]", fmt::format(R"(, "normalizer": {{"type": "Sequence", "normalizers": [{}]}})", all))),
      HasSubstr("makes the text too long"));
  std::string many = R"({"type": "NFC"})";
  for (int i = 0; i < 300; ++i) many += R"(, {"type": "NFC"})";
  EXPECT_THAT(
      refusal(bpe({"a"}, "[]", fmt::format(R"(, "normalizer": {{"type": "Sequence", "normalizers": [{}]}})", many))),
      HasSubstr("more than 256 steps"));
}

}  // namespace
}  // namespace poise
