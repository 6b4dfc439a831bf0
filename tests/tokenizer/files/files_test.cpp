// Tokenizer files of a directory. Ids are those of Hugging Face's library (tokenizers 0.23.2) for a tokenizer.json of
// the same tokens, unless a test gives another source.
#include "tokenizer/files/files.hpp"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/real_tokenizers.hpp"
#include "syntax/json.hpp"
#include "tokenizer/sentencepiece_bytes.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Files = std::map<std::string, std::string>;
using Ids = std::vector<TokenId>;

Vocabulary read(const Files& files) {
  const support::TemporaryDirectory directory;
  for (const auto& [name, content] : files) support::put(directory / name, content);
  return read_vocabulary(directory.path()).value();
}

Files with(Files files, const std::string& name, const std::string& content) {
  files[name] = content;
  return files;
}

constexpr const char* kConfig = "tokenizer_config.json";

const Files kVocabAndMerges = {
    {"vocab.json",
     R"({"a": 0, "1": 1, "2": 2, "12": 3, "Ġ": 4, "Ã": 5, "©": 6, "Ã©": 7, "<|endoftext|>": 8, "e": 9, "Ì": 10, "ģ": 11, ".": 12, "Ċ": 13, ".Ċ": 14})"},
    {"merges.txt", "#version: 0.2\n1 2\nÃ ©\n. Ċ\n"}};

// If tokenizer.model is a list of OpenAI's tiktoken, complete or not, tokenizer.json is read instead.
TEST(TokenizerFiles, ATiktokenListIsSkipped) {
  const Files json = {{"tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})"}};
  for (const char* list : {"IQ== 0\nIg== 1\n", "IQ== 0\r\n", "IQ== 0\nthis is broken", "IQ== 12345"}) {
    SCOPED_TRACE(list);
    EXPECT_EQ(read(with(json, "tokenizer.model", list)), read(json));
    const Error error = error_of([&] { (void)read({{"tokenizer.model", list}}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.message(), testing::HasSubstr("a vocabulary of OpenAI's tiktoken"));
  }
  // Other files of this name are SentencePiece's, or are meant to be.
  for (const char* broken : {"", "a model", "IQ== x\n", "IQ=! 0\n", " 0\n", "\x0a\xff"}) {
    SCOPED_TRACE(broken);
    EXPECT_EQ(error_of([&] { (void)read(with(json, "tokenizer.model", broken)); }).kind(), ErrorKind::invalid_file);
  }
}

TEST(VocabAndMerges, AreCutAsTheirClassDoes) {
  struct Case {
    const char* text;
    Ids gpt2;
    Ids qwen2;
  };
  const Case cases[] = {{"a12 12", {0, 3, 4, 3}, {0, 1, 2, 4, 1, 2}},
                        {"e\u0301", {9, 10, 11}, {7}},
                        {".\n", {12, 13}, {14}},
                        {"1<|endoftext|>", {1, 8}, {1, 8}}};
  const auto of = [](const std::string& name) {
    return Tokenizer(read(
        with(kVocabAndMerges, kConfig, name.empty() ? "{}" : fmt::format(R"({{"tokenizer_class": "{}"}})", name))));
  };
  for (const char* name : {"", "GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer", "RobertaTokenizerFast",
                           "BartTokenizer", "Qwen2Tokenizer", "Qwen2TokenizerFast"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = of(name);
    for (const Case& test_case : cases)
      EXPECT_EQ(tokenizer.encode(test_case.text),
                std::string_view(name).starts_with("Qwen2") ? test_case.qwen2 : test_case.gpt2)
          << test_case.text;
  }
}

TEST(VocabAndMerges, OfAnUnknownClassAreRefused) {
  for (const char* name : {"CodeGenTokenizer", "Fast", "", "PreTrainedTokenizerFast"}) {
    const Error error =
        error_of([&] { read(with(kVocabAndMerges, kConfig, fmt::format(R"({{"tokenizer_class": "{}"}})", name))); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("how a \"{}\" splits texts", name)));
    EXPECT_THAT(error.what(), HasSubstr(kConfig));
  }
  const Error wrong = error_of([&] { read(with(kVocabAndMerges, kConfig, R"({"tokenizer_class": 3})")); });
  EXPECT_EQ(wrong.kind(), ErrorKind::invalid_file);
  EXPECT_EQ(wrong.message(), "tokenizer_class: expected text");
  EXPECT_THAT(wrong.what(), HasSubstr(kConfig));
  EXPECT_EQ(read(with(kVocabAndMerges, kConfig, R"({"tokenizer_class": null})")).size(), 15U);
}

TEST(VocabAndMerges, TakeTheAddedTokensOfTheConfigurationWithTheirFlags) {
  const Tokenizer tokenizer(
      read(with(kVocabAndMerges, kConfig,
                R"({"added_tokens_decoder": {"16": {"content": "aa", "single_word": true, "lstrip": false,
      "rstrip": false, "normalized": false, "special": false}, "15": {"content": "<go>", "lstrip": true, "special": true, "normalized": false}}})")));
  EXPECT_THAT(tokenizer.encode("a <go> a"), ElementsAre(0, 15, 4, 0));
  EXPECT_THAT(tokenizer.encode("aaa aa"), ElementsAre(0, 0, 0, 4, 16));
  EXPECT_THAT(tokenizer.encode("1<|endoftext|>"), ElementsAre(1, 8));
  EXPECT_EQ(tokenizer.vocabulary().type(15), TokenType::control);
  EXPECT_EQ(tokenizer.vocabulary().type(16), TokenType::user_defined);
}

TEST(VocabAndMerges, TakeTheAddedTokensOfOlderDirectories) {
  Files files = with(kVocabAndMerges, "added_tokens.json", R"({"<go>": 15, "<stop>": 16, "<no>": 17})");
  files["special_tokens_map.json"] =
      R"({"additional_special_tokens": ["<go>"], "eos_token": {"content": "<stop>", "lstrip": false}, "bos_token": "a"})";
  const Tokenizer tokenizer(read(files));
  EXPECT_THAT(tokenizer.encode("1<go>2<no><stop>"), ElementsAre(1, 15, 2, 17, 16));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, 15, 2, 17, 16}), "12<no>");
  EXPECT_EQ(tokenizer.vocabulary().eos_id, 16);
  // tokenizer_config.json takes precedence where both list a token.
  files[kConfig] = R"({"added_tokens_decoder": {"15": {"content": "<x>"}, "18": {"content": "<no>"}}})";
  EXPECT_THAT(Tokenizer(read(files)).encode("<x><no><stop>"), ElementsAre(15, 18, 16));
}

TEST(VocabAndMerges, PutBosInFrontWhereTheConfigurationAddsIt) {
  const auto around = [](const std::string& config) {
    return Tokenizer(read(with(kVocabAndMerges, kConfig, config))).encode_with_special("a");
  };
  EXPECT_THAT(around("{}"), ElementsAre(0));
  EXPECT_THAT(around(R"({"add_bos_token": false, "bos_token": "1"})"), ElementsAre(0));
  EXPECT_THAT(around(R"({"add_bos_token": true, "bos_token": "1"})"), ElementsAre(1, 0));
  EXPECT_THAT(around(R"({"add_bos_token": true})"), ElementsAre(8, 0));  // the id of GPT-2's own BOS
  EXPECT_THAT(around(R"({"add_bos_token": true, "tokenizer_class": "Qwen2Tokenizer"})"), ElementsAre(0));
}

TEST(VocabAndMerges, AreRefusedForFaultsInOtherFiles) {
  const auto problem = [](const std::string& name, const std::string& content) {
    const Error error = error_of([&] { read(with(kVocabAndMerges, name, content)); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr(name));
    return error.message();
  };
  EXPECT_THAT(problem("added_tokens.json", R"({"<go>": "15"})"), HasSubstr("\"<go>\": expected an id"));
  EXPECT_THAT(problem("added_tokens.json", R"({"<go>": 500000})"), HasSubstr("the id is 500000"));
  EXPECT_THAT(problem("added_tokens.json", R"({"<a>": 15, "<b>": 15})"),
              HasSubstr("\"<b>\": another token has the id 15"));
  EXPECT_THAT(problem(kConfig, R"({"added_tokens_decoder": [1]})"),
              HasSubstr("added_tokens_decoder: expected an object"));
  EXPECT_THAT(problem(kConfig, R"({"added_tokens_decoder": {"x": {"content": "a"}}})"),
              HasSubstr("\"x\": expected an id"));
  EXPECT_THAT(problem(kConfig, R"({"added_tokens_decoder": {"15": {"content": "a"}, "015": {"content": "b"}}})"),
              HasSubstr("\"015\": the id appears twice"));
  EXPECT_THAT(problem(kConfig, R"({"added_tokens_decoder": {"15": "a"}})"),
              HasSubstr("\"15\": expected an object with \"content\""));
  EXPECT_THAT(problem(kConfig, R"({"added_tokens_decoder": {"18446744073709551615": {"content": "a"}}})"),
              HasSubstr("the id is 18446744073709551615"));
}

// These files give the same tokens as the tokenizer.json that their content comes from.
TEST(VocabAndMerges, OfQwen2DoAsItsTokenizerJson) {
  const auto real = support::real_tokenizer("qwen2_5");
  if (!real) GTEST_SKIP() << "the shared data are not there";
  const auto folder = shared_directory() / "data" / "tokenizers" / "qwen2_5";
  const Value json = parse_json(support::contents(folder / "tokenizer.json"), "tokenizer.json");
  const Attributes& model = *json.get_if<Attributes>()->find("model")->get_if<Attributes>();
  std::string merges;
  for (const auto& [left, right] : real->vocabulary.merges) merges += fmt::format("{} {}\n", left, right);
  const Tokenizer tokenizer(read({{"vocab.json", to_json(*model.find("vocab"))},
                                  {"merges.txt", merges},
                                  {kConfig, support::contents(folder / kConfig)}}));
  EXPECT_EQ(real->expected.size(), 40U);
  for (const support::ExpectedTokens& sample : real->expected) {
    EXPECT_EQ(tokenizer.encode(sample.text), sample.ids) << sample.text.substr(0, 200);
    EXPECT_EQ(tokenizer.encode_with_special(sample.text), sample.ids_special) << sample.text.substr(0, 200);
    EXPECT_EQ(tokenizer.decode(sample.ids, SpecialTokens::shown), sample.decoded) << sample.text.substr(0, 200);
  }
}

// Returns a model with "a", "b" and "ab", and U+2581 for spaces.
std::string sentencepiece(bool removal = false) {
  std::string model = piece("<unk>", 2, 0) + piece("<s>", 3, 0) + piece("</s>", 3, 0);
  float score = 0;
  for (const char* text : {"\u2581", "a", "b", "ab", "\u2581ab", "x"}) model += piece(text, 1, score -= 1);
  return model + bytes_field(2, varint_field(3, 2)) +
         bytes_field(3, varint_field(3, 1) + varint_field(4, removal ? 1 : 0));
}

const Files kSentencePiece = {{"tokenizer.model", sentencepiece()}};

// Directories of ChatML models had these files before added_tokens_decoder. Expected: the result of llama.cpp's
// converter (base.py).
TEST(TokenizerModel, TakesTheAddedTokensOfOlderDirectories) {
  Files files = with(kSentencePiece, "added_tokens.json", R"({"<|im_start|>": 10, "<|im_end|>": 9, "<pad>": 11})");
  files["special_tokens_map.json"] = R"({"bos_token": "<s>", "additional_special_tokens": ["<|im_start|>"]})";
  files[kConfig] = R"({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>", "lstrip": false}})";
  const Tokenizer tokenizer(read(files));
  EXPECT_THAT(tokenizer.encode("<|im_start|>ab<|im_end|>x<pad>"), ElementsAre(10, 7, 9, 3, 8, 11));
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  EXPECT_EQ(vocabulary.size(), 12U);
  EXPECT_EQ(vocabulary.type(9), TokenType::eos);  // as tokenizer_config.json states
  EXPECT_EQ(vocabulary.type(10), TokenType::control);
  EXPECT_EQ(vocabulary.type(11), TokenType::user_defined);
  EXPECT_EQ(vocabulary.score(10), -1000);
  EXPECT_EQ(vocabulary.eos_id, 9);
}

// extra_special_tokens is a list since transformers 5, and gives names to tokens before. Its tokens are special.
TEST(TokenizerModel, TakesExtraSpecialTokensInBothForms) {
  for (const char* extra : {R"(["<a>", {"content": "<b>"}])", R"({"image_token": "<a>", "eoi": {"content": "<b>"}})"}) {
    Files files = with(kSentencePiece, "added_tokens.json", R"({"<a>": 9, "<b>": 10, "<c>": 11})");
    files[kConfig] = R"({"extra_special_tokens": )" + std::string(extra) + "}";
    const Vocabulary vocabulary = read(files);
    EXPECT_EQ(vocabulary.type(9), TokenType::control) << extra;
    EXPECT_EQ(vocabulary.type(10), TokenType::control) << extra;
    EXPECT_EQ(vocabulary.type(11), TokenType::user_defined) << extra;
  }
}

// The ids decide which control piece is BOS or EOS; ids 0 to 3 are <unk>, <s>, </s> and a space. A piece of text stays
// a piece of text.
TEST(TokenizerModel, HasTheTypesOfTheIdsThatTheConfigurationGives) {
  const auto types = [](const std::string& config) {
    const Vocabulary vocabulary = read(with(kSentencePiece, kConfig, config));
    return std::vector{vocabulary.type(1), vocabulary.type(2), vocabulary.type(4)};
  };
  using enum TokenType;
  EXPECT_THAT(types("{}"), ElementsAre(bos, eos, normal));
  EXPECT_THAT(types(R"({"eos_token": "a"})"), ElementsAre(bos, control, normal));
  EXPECT_THAT(types(R"({"bos_token": "</s>", "eos_token": "</s>"})"), ElementsAre(control, bos, normal));
}

TEST(TokenizerModel, PrefersTheConfigurationForATokensText) {
  Files files = with(kSentencePiece, "added_tokens.json", R"({"<go>": 9, "<stop>": 10})");
  files[kConfig] = R"({"added_tokens_decoder": {"9": {"content": "<go>", "rstrip": true, "special": true}}})";
  EXPECT_THAT(Tokenizer(read(files)).encode("<go>  <stop>"), ElementsAre(9, 10));
}

// Expected: the types, scores and names of llama.cpp's converter (base.py).
TEST(TokenizerModel, FillsGapsBetweenIdsWithUnusedTokens) {
  const Files files =
      with(kSentencePiece, kConfig,
           R"({"added_tokens_decoder": {"12": {"content": "<go>", "special": true}, "10": {"content": "<x>"}}})");
  const Tokenizer tokenizer(read(files));
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  EXPECT_EQ(vocabulary.size(), 13U);
  EXPECT_EQ(vocabulary.text(9), "[PAD9]");
  EXPECT_EQ(vocabulary.type(9), TokenType::unused);
  EXPECT_EQ(vocabulary.type(10), TokenType::user_defined);
  EXPECT_EQ(vocabulary.type(11), TokenType::unused);
  EXPECT_EQ(vocabulary.type(12), TokenType::control);
  EXPECT_THAT(tokenizer.encode("ab<go>x<x>"), ElementsAre(7, 12, 3, 8, 10));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{7, 12, 3, 8, 10}), "ab x<x>");
}

TEST(TokenizerModel, TakesTheTextThatTheConfigurationGivesToAPiece) {
  const Files files = with(kSentencePiece, kConfig,
                           R"({"bos_token": "<bos>", "added_tokens_decoder": {"8": {"content": "<go>", "special": true},
      "1": {"content": "<bos>", "special": true}, "4": {"content": "q"}}})");
  const Tokenizer tokenizer(read(files));
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  EXPECT_EQ(vocabulary.size(), 9U);
  EXPECT_EQ(vocabulary.text(8), "<go>");
  EXPECT_EQ(vocabulary.type(8), TokenType::control);
  EXPECT_EQ(vocabulary.score(8), -1000);
  EXPECT_EQ(vocabulary.text(4), "q");
  EXPECT_EQ(vocabulary.type(4), TokenType::user_defined);
  EXPECT_EQ(vocabulary.bos_id, 1);
  EXPECT_EQ(vocabulary.unk_id, 0);
  EXPECT_THAT(tokenizer.encode_with_special("ab<go>q<bos>"), ElementsAre(1, 7, 8, 4, 1));
  EXPECT_THAT(tokenizer.encode("x"), ElementsAre(3, 0));  // the text that piece 8 had
}

TEST(TokenizerModel, TakesAListedPieceAsItIs) {
  const Files files =
      with(kSentencePiece, kConfig,
           R"({"added_tokens_decoder": {"6": {"content": "ab", "single_word": true}, "7": {"content": ""}}})");
  const Vocabulary vocabulary = read(files);
  EXPECT_EQ(vocabulary.type(6), TokenType::normal);
  EXPECT_EQ(vocabulary.score(6), -4);
  EXPECT_EQ(vocabulary.text(7), "\u2581ab");
  EXPECT_THAT(Tokenizer(vocabulary).encode("xab ab"), ElementsAre(3, 8, 6, 3, 6));
}

TEST(TokenizerModel, RefusesFaultyListsOfTheConfiguration) {
  const auto problem = [](const std::string& decoder) {
    const Error error = error_of(
        [&] { read(with(kSentencePiece, kConfig, fmt::format(R"({{"added_tokens_decoder": {}}})", decoder))); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr(kConfig));
    return error.message();
  };
  EXPECT_THAT(problem(R"({"5000": {"content": "<go>"}})"),
              HasSubstr("\"<go>\": the id 5000 is far larger than the number of tokens"));
  EXPECT_THAT(problem(R"({"500000": {"content": "<go>"}})"), HasSubstr("the id is 500000, at most"));
  EXPECT_THAT(problem(R"({"-1": {"content": "<go>"}})"), HasSubstr("\"-1\": expected an id"));
  EXPECT_THAT(problem(R"({"9": {"content": 3}})"), HasSubstr("\"9\": expected an object with \"content\""));
}

// With "legacy": false transformers' LlamaConverter writes Metaspace with prepend_scheme "first" and no normalizer. Ids
// and texts are those of the library for that; where white space is removed, with Strip on the right and " {2,}"
// replaced by a space in front of it.
TEST(TokenizerModel, PutsASpaceOnlyInFrontOfTheTextIfNotLegacy) {
  struct Case {
    const char* text;
    Ids ids;
    Ids removal;
    const char* shown;   // text of the ids
    const char* hidden;  // text of the ids
  };
  const Case cases[] = {{"ab", {7}, {7}, "ab", "ab"},
                        {" ab", {7}, {7}, "ab", "ab"},
                        {"  ab", {3, 7}, {7}, " ab", " ab"},
                        {"\u2581ab", {7}, {7}, "ab", "ab"},
                        {"ab</s>ab", {7, 2, 6}, {7, 2, 6}, "ab</s>ab", "abab"},
                        {"ab</s> ab", {7, 2, 7}, {7, 2, 7}, "ab</s> ab", "ab ab"},
                        {"ab</s>  ab", {7, 2, 3, 7}, {7, 2, 7}, "ab</s>  ab", "ab  ab"},
                        {"<s>ab", {1, 6}, {1, 6}, "<s>ab", "ab"},
                        {"<s> ab", {1, 7}, {1, 7}, "<s> ab", "ab"},
                        {"ab<go>  ab ab", {7, 9, 6, 7}, {7, 9, 6, 7}, "ab<go>ab ab", "abab ab"},
                        {" ", {3}, {}, "", ""},
                        {" </s> ", {3, 2, 3}, {2}, "</s> ", " "},
                        {"ab </s>x", {7, 3, 2, 8}, {7, 2, 8}, "ab </s>x", "ab x"}};
  const std::string config =
      R"({"legacy": false, "added_tokens_decoder": {"1": {"content": "<s>", "special": true}, "2": {"content": "</s>", "special": true},
      "9": {"content": "<go>", "special": true, "rstrip": true}}})";
  const Vocabulary vocabulary = read(with(kSentencePiece, kConfig, config));
  const Vocabulary removal = read({{"tokenizer.model", sentencepiece(true)}, {kConfig, config}});
  // The same for files that Poise writes: tokenizer.model with its configuration, and tokenizer.json.
  std::vector<std::pair<Vocabulary, bool>> all = {{vocabulary, false}, {removal, true}};
  for (const bool removes : {false, true}) {
    const TokenizerFiles written = make_tokenizer_files(removes ? removal : vocabulary);
    EXPECT_THAT(written.losses, IsEmpty());
    Files files;
    for (const TokenizerFile& file : written.files) files.emplace(file.name, file.bytes);
    all.emplace_back(read(files), removes);
    EXPECT_NE(all.back().first.pipeline.find("prepend_scheme"), nullptr);
    EXPECT_EQ(files.erase("tokenizer.model"), 1U);
    all.emplace_back(read(files), removes);
    EXPECT_EQ(all.back().first.kind, VocabularyKind::pipeline);
  }
  for (const auto& [one, removes] : all) {
    SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(one.kind), removes));
    const Tokenizer tokenizer(one);
    for (const Case& test : cases) {
      SCOPED_TRACE(test.text);
      EXPECT_EQ(tokenizer.encode(test.text), removes ? test.removal : test.ids);
      if (removes && test.ids != test.removal) continue;
      EXPECT_EQ(tokenizer.decode(test.ids, SpecialTokens::shown), test.shown);
      EXPECT_EQ(tokenizer.decode(test.ids), test.hidden);
    }
  }
}

TEST(TokenizerModel, IsLegacyByDefault) {
  for (const char* config : {"{}", R"({"legacy": null})", R"({"legacy": true})"})
    EXPECT_THAT(read(with(kSentencePiece, kConfig, config)).pipeline, IsEmpty());
  Vocabulary other = read(with(kSentencePiece, kConfig, R"({"legacy": false})"));
  EXPECT_EQ(other.pipeline, (Attributes{{"prepend_scheme", "first"}}));
  other.pipeline.set("prepend_scheme", "last");
  EXPECT_THAT(error_of([&] { Tokenizer{other}; }).message(), HasSubstr("prepend_scheme: expected \"first\""));
}

TEST(TokenizerFilesOfADirectory, HaveTheKeysBesidesTheTokens) {
  const Files files = {
      {"tokenizer.json", R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2}}})"},
      {"special_tokens_map.json", R"({"bos_token": "b", "eos_token": {"content": "c"}})"},
      {"chat_template.json", R"({"chat_template": "{{ json }}"})"}};
  const Vocabulary alone = read(files);
  EXPECT_EQ(alone.bos_id, 1);
  EXPECT_EQ(alone.eos_id, 2);
  EXPECT_EQ(alone.chat_template, Value("{{ json }}"));
  const Vocabulary named = read(with(files, kConfig, R"({"bos_token": "a", "chat_template": "{{ config }}"})"));
  EXPECT_EQ(named.bos_id, 0);
  EXPECT_EQ(named.eos_id, 2);
  EXPECT_EQ(named.chat_template, Value("{{ config }}"));
  EXPECT_EQ(read(with(files, "chat_template.jinja", "{{ jinja }}")).chat_template, Value("{{ jinja }}"));
}

// As in transformers, chat_template.jinja takes precedence over tokenizer_config.json, and the folder's templates
// belong to it.
TEST(TokenizerFilesOfADirectory, KeepTemplatesAndNamesAsTheyWere) {
  const std::string config =
      R"({"chat_template": "{{ config }}", "model_max_length": 1000000000000000019884624838656})";
  const Files files = {
      {"tokenizer.json", R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2}}})"},
      {"additional_chat_templates/rag.jinja", "{{ rag }}"},
      {"additional_chat_templates/notes.txt", "no template"},
      {"chat_template.jinja", "{{ jinja }}"},
      {"special_tokens_map.json", R"({"pad_token" : "c", "eos_token": "b"})"},
      {kConfig, config}};
  Vocabulary vocabulary = read(files);
  EXPECT_EQ(vocabulary.pad_id, 2);
  EXPECT_EQ(vocabulary.chat_template, Value(Value::Array{Attributes{{"name", "default"}, {"template", "{{ jinja }}"}},
                                                         Attributes{{"name", "rag"}, {"template", "{{ rag }}"}}}));
  const auto written = [&] {
    Files result;
    for (const TokenizerFile& file : make_tokenizer_files(vocabulary).files) result[file.name] = file.bytes;
    result.erase("tokenizer.json");
    return result;
  };
  Files expected = files;
  expected.erase("tokenizer.json");
  expected.erase("additional_chat_templates/notes.txt");
  EXPECT_EQ(written(), expected);
  // A change appears only in tokenizer_config.json.
  vocabulary.chat_template = "{{ other }}";
  vocabulary.pad_id = 0;
  Files changed = written();
  EXPECT_EQ(parse_json(changed[kConfig], "config"),
            Value(Attributes{{"model_max_length", 1e30}, {"pad_token", "a"}, {"chat_template", "{{ other }}"}}));
  EXPECT_EQ(changed["special_tokens_map.json"], files.at("special_tokens_map.json"));  // tokenizer_config.json counts
  EXPECT_EQ(changed.size(), 2U);
  vocabulary.pad_id = -1;
  EXPECT_EQ(parse_json(written()["special_tokens_map.json"], "map"), Value(Attributes{{"eos_token", "b"}}));
}

// Names become paths, so that unknown ones are refused.
TEST(TokenizerFilesOfADirectory, HaveKnownNames) {
  EXPECT_TRUE(is_additional_template("additional_chat_templates/a b.jinja"));
  for (const char* name : {"additional_chat_templates/.jinja", "additional_chat_templates/..jinja",
                           "additional_chat_templates/../a.jinja", "additional_chat_templates/a/b.jinja",
                           "additional_chat_templates/a", "additional_chat_templates", "a.jinja", "../a", ""}) {
    EXPECT_FALSE(is_additional_template(name)) << name;
    EXPECT_THAT(find_problem_with_files({{name, "x"}}), HasSubstr("is not the name of a tokenizer file")) << name;
  }
  EXPECT_EQ(find_problem_with_files({{"chat_template.jinja", 3}}), "chat_template.jinja: expected text");
  EXPECT_EQ(find_problem_with_files({{"chat_template.jinja", "x"}, {"special_tokens_map.json", "x"}}), "");
}

TEST(TokenizerFilesOfADirectory, RefuseGitLfsPointers) {
  const auto expect_refused = [](const std::string& name, const Files& files) {
    const Error error = error_of(
        [&] { read(with(files, name, "version https://git-lfs.github.com/spec/v1\noid sha256:dadf\nsize 493443\n")); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr(name + ": this is a Git LFS pointer"));
  };
  expect_refused("tokenizer.model", {});
  expect_refused("tokenizer.json", {});
  expect_refused("merges.txt", kVocabAndMerges);
  expect_refused(kConfig, kSentencePiece);
  expect_refused("added_tokens.json", kSentencePiece);
}

// An error has the file with the fault.
TEST(TokenizerFilesOfADirectory, ReportFaultsOfMergesWithTheirFile) {
  const Error error = error_of([&] { read(with(kVocabAndMerges, "merges.txt", "#version: 0.2\n1 2\n1 2 3\n")); });
  EXPECT_EQ(error.message(), "line 3: expected two tokens with one space between them");
  EXPECT_THAT(error.path(), testing::EndsWith("merges.txt"));
  EXPECT_EQ(error.offset(), 18U);
}

}  // namespace
}  // namespace poise
