// The expected ids and texts come from the SentencePiece library, which is linked into the tests only.
#include <poise/tokenizer.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "support/directories.hpp"
#include "tokenizer/sentencepiece/model.hpp"
#include "tokenizer/sentencepiece_bytes.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Vocabulary read(const std::string& file) {
  std::vector<std::byte> bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  return read_sentencepiece(*Source::from_memory(std::move(bytes), "tokenizer.model"));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char byte : text.substr(0, 200)) {
    const auto code = static_cast<unsigned char>(byte);
    out += code >= 0x20 && code < 0x7f ? std::string(1, byte) : fmt::format("\\x{:02x}", code);
  }
  return out;
}

// Compares Poise's tokenizer and the reference, from the same model file.
class Both {
 public:
  explicit Both(const std::string& file) : tokenizer_(read(file)) {
    const auto status = reference_.LoadFromSerializedProto(file);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  const Tokenizer& tokenizer() const { return tokenizer_; }
  int size() const { return reference_.GetPieceSize(); }

  void compare_encode(const std::string& text) const {
    std::vector<int> expected;
    ASSERT_TRUE(reference_.Encode(text, &expected).ok());
    ASSERT_EQ(tokenizer_.encode(text), expected) << escaped(text);
    compare_decode(expected);
  }

  // Decodes as a whole and as a stream, in which no piece may end inside a character.
  void compare_decode(const std::vector<int>& ids) const {
    std::string expected;
    ASSERT_TRUE(reference_.Decode(ids, &expected).ok());
    ASSERT_EQ(escaped(tokenizer_.decode(ids)), escaped(expected)) << fmt::format("{}", ids);
    TextStream stream(tokenizer_);
    std::string streamed;
    for (const int id : ids) {
      const std::string piece = stream.add(id);
      ASSERT_EQ(measure_incomplete_tail(piece), 0U) << fmt::format("{}", ids);
      streamed += piece;
    }
    ASSERT_EQ(streamed + stream.finish(), expected) << fmt::format("{}", ids);
  }

 private:
  Tokenizer tokenizer_;
  sentencepiece::SentencePieceProcessor reference_;
};

const std::vector<std::string> kParts = {"Once upon a time, there was a little hedgehog named Bramble.",
                                         "The quick brown fox jumps over the lazy dog",
                                         "don't",
                                         " ",
                                         "  ",
                                         "\t",
                                         "\n",
                                         "\r\n",
                                         "12345.678",
                                         "na\u00efve caf\u00e9 \u00c5ngstr\u00f6m",
                                         "e\u0301",
                                         "\u4f60\u597d\uff0c\u4e16\u754c",
                                         "\u3053\u3093\u306b\u3061\u306f",
                                         "\ud55c\uad6d\uc5b4",
                                         "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439",
                                         "\u0645\u0631\u062d\u0628\u0627",
                                         "\U0001F600",
                                         "\U0001F468\u200D\U0001F469\u200D\U0001F467",
                                         "\U0001F1E9\U0001F1EA",
                                         "<s>",
                                         "</s>",
                                         "<unk>",
                                         "<0x41>",
                                         "<0x0A>",
                                         "<pad>",
                                         "\u2581",
                                         "\u2581\u2581the",
                                         "\u2581<s>",
                                         "\ufffd",
                                         "\ufeff",
                                         "\u00a0",
                                         "\u3000",
                                         "\u200b",
                                         std::string(1, '\0'),
                                         "\x01\x1f\x7f",
                                         "\x80",
                                         "\xff",
                                         "\xc3",
                                         "\xe2\x96",
                                         "\xf0\x9f\x98",
                                         "\xc0\xaf",
                                         "\xed\xa0\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xf8\x88\x80\x80\x80",
                                         "def f(x):\n    return x**2  # squares\n",
                                         "https://example.org/?q=a&b=%20",
                                         std::string(300, ' '),
                                         std::string(300, 'a'),
                                         std::string(40, '\n'),
                                         "aaaaaaab",
                                         "!!!!!!!!????"};

// Returns texts of all kinds, the same ones every time.
std::vector<std::string> corpus(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::string> texts = kParts;
  texts.emplace_back();
  while (texts.size() < count) {
    std::string text;
    for (auto parts = random() % 8; parts > 0; --parts) {
      if (random() % 4 == 0) {
        for (auto bytes = random() % 12; bytes > 0; --bytes) text += static_cast<char>(random() % 256);
      } else {
        text += kParts[random() % kParts.size()];
      }
      if (random() % 2 == 0) text += ' ';
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

void compare_with_model(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  std::ifstream file(path, std::ios::binary);
  const Both tokenizers(std::string(std::istreambuf_iterator<char>(file), {}));
  for (const std::string& text : corpus(6000)) ASSERT_NO_FATAL_FAILURE(tokenizers.compare_encode(text));
  std::mt19937 random(8);
  for (int round = 0; round < 4000; ++round) {
    std::vector<int> ids(random() % 12);
    for (int& id : ids)
      id = static_cast<int>(random() % static_cast<unsigned>(random() % 2 == 0 ? tokenizers.size() : 300));
    ASSERT_NO_FATAL_FAILURE(tokenizers.compare_decode(ids));
  }
}

TEST(Tokenizer, AgreesWithSentencePieceOnMistral) {
  compare_with_model(shared_directory() / "data/mistral-7b-v0.1/tokenizer.model");
}

TEST(Tokenizer, AgreesWithSentencePieceOnNanoMistral) {
  compare_with_model(source_directory() / "examples/nano-mistral/tokenizer.model");
}

// Gives some texts from which SentencePiece's own trainer makes models, charsmaps included.
class Texts final : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return at_ == texts_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return texts_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> texts_ = [] {
    std::vector<std::string> texts;
    for (int times = 0; times < 20; ++times) {
      for (const std::string& part : kParts) {
        if (is_utf8(part) && part.size() < 200 && part.find('\0') == std::string::npos &&
            part.find('\n') == std::string::npos)
          texts.push_back(part + " or");
      }
    }
    return texts;
  }();
  std::size_t at_ = 0;
};

std::string trained_model(const std::string& options) {
  Texts texts;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--minloglevel=3 --vocab_size=420 --hard_vocab_limit=false " + options, &texts, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

TEST(Tokenizer, AgreesWithSentencePieceOnModelsThatItTrains) {
  for (const char* type : {"unigram", "bpe"}) {
    for (const char* normalizer : {"identity", "nmt_nfkc", "nmt_nfkc_cf", "nfkc"}) {
      for (const char* more :
           {"--byte_fallback=true",
            "--remove_extra_whitespaces=false --user_defined_symbols=<sep>,the,e\u0301 --add_dummy_prefix=false"}) {
        const std::string options =
            fmt::format("--model_type={} --normalization_rule_name={} {}", type, normalizer, more);
        SCOPED_TRACE(options);
        const Both tokenizers(trained_model(options));
        ASSERT_GT(tokenizers.size(), 100);
        for (const std::string& text : corpus(600)) ASSERT_NO_FATAL_FAILURE(tokenizers.compare_encode(text));
      }
    }
  }
}

TEST(Tokenizer, AgreesWithSentencePieceOnSpacesAfterWordsAndDenormalizers) {
  const support::TemporaryDirectory directory;
  // "th" becomes "TH", "e" followed by a space becomes "E_", and a space in front of "a" goes.
  std::ofstream(directory / "rules.tsv") << "74 68\t54 48\n65 20\t45 5F\n20 61\t61\n";
  const std::string rules = fmt::format("--denormalization_rule_tsv={}", (directory / "rules.tsv").string());
  for (const char* type : {"unigram", "bpe"}) {
    for (const std::string& more : {std::string("--treat_whitespace_as_suffix=true"),
                                    std::string("--treat_whitespace_as_suffix=true --remove_extra_whitespaces=false"),
                                    std::string("--treat_whitespace_as_suffix=true --add_dummy_prefix=false"), rules,
                                    rules + " --treat_whitespace_as_suffix=true"}) {
      const std::string options = fmt::format("--model_type={} {}", type, more);
      SCOPED_TRACE(options);
      const Both tokenizers(trained_model(options));
      ASSERT_GT(tokenizers.size(), 100);
      for (const std::string& text : corpus(300)) ASSERT_NO_FATAL_FAILURE(tokenizers.compare_encode(text));
      std::mt19937 random(11);
      for (int round = 0; round < 300; ++round) {
        std::vector<int> ids(random() % 12);
        for (int& id : ids) id = static_cast<int>(random() % static_cast<unsigned>(tokenizers.size()));
        ASSERT_NO_FATAL_FAILURE(tokenizers.compare_decode(ids));
      }
    }
  }
}

// Makes a random small vocabulary with pieces of every type, so that merges collide, tie and end in unused pieces.
// `algorithm`: 1 unigram, 2 bpe.
std::string random_model(std::mt19937& random, int algorithm) {
  const std::vector<std::string> letters = {"a", "b", "c", "\u2581", "\u00e9", " "};
  std::vector<std::string> texts;
  const auto add = [&](std::string text) {
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  };
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (random() % 8 != 0) add(letters[i]);
  }
  for (auto more = 10 + random() % 40; more > 0; --more) {
    const auto& any = [&]() -> const std::string& {
      return texts.empty() || random() % 4 == 0 ? letters[random() % letters.size()] : texts[random() % texts.size()];
    };
    add(any() + any());
  }
  std::string file = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
  if (random() % 4 == 0) file += piece("ab", 3);  // a control piece with the name of a piece
  for (const std::string& text : texts) {
    const int type = random() % 4 == 0 ? 5 : random() % 12 == 0 ? 4 : 1;
    file += piece(text, type, -static_cast<float>(random() % 20));
  }
  const bool bytes = random() % 2 == 0;
  for (int byte = 0; bytes && byte < 256; ++byte) file += piece(fmt::format("<0x{:02X}>", byte), 6, 0);
  file += bytes_field(
      2, varint_field(3, algorithm) + varint_field(24, random() % 4 == 0) + varint_field(35, bytes ? 1 : 0));
  return file + bytes_field(3, varint_field(3, random() % 2 == 0) + varint_field(4, random() % 2 == 0) +
                                   varint_field(5, random() % 4 != 0));
}

TEST(Tokenizer, AgreesWithSentencePieceOnRandomVocabularies) {
  std::mt19937 random(9);
  const std::vector<std::string> letters = {"a", "b", "c", "d", " ", " ", "\u00e9", "\u2581", "\xff", "\xe2\x96"};
  for (int round = 0; round < 300; ++round) {
    const Both tokenizers(random_model(random, 1 + round % 2));
    for (int texts = 0; texts < 30; ++texts) {
      std::string text;
      for (auto length = random() % 30; length > 0; --length) text += letters[random() % letters.size()];
      // Where a control piece has a normal piece's name, SentencePiece fails to encode; decoding is still defined.
      std::vector<int> ids(random() % 12);
      for (int& id : ids) id = static_cast<int>(random() % static_cast<unsigned>(tokenizers.size()));
      ASSERT_NO_FATAL_FAILURE(tokenizers.compare_decode(ids)) << round;
      if (tokenizers.tokenizer().vocabulary().text(3) == "ab" &&
          tokenizers.tokenizer().vocabulary().type(3) == TokenType::control)
        continue;
      ASSERT_NO_FATAL_FAILURE(tokenizers.compare_encode(text)) << round;
    }
  }
}

Vocabulary letters_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("a", -1, TokenType::normal);
  vocabulary.add("aa", -2, TokenType::normal);
  vocabulary.add("aaaa", -3, TokenType::normal);
  return vocabulary;
}

TEST(Tokenizer, AMegabyteWithoutSpacesIsNotQuadratic) {
  const Tokenizer tokenizer(letters_vocabulary());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer.encode(std::string(1 << 20, 'a')).size(), (1U << 18) + 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1)) << "n log n takes about a second";
}

TEST(Tokenizer, RefusesTextsThatItCannotEncode) {
  const auto error_of = [](const Vocabulary& vocabulary) -> std::string {
    try {
      Tokenizer(vocabulary).encode("b");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  Vocabulary vocabulary = letters_vocabulary();
  EXPECT_EQ(error_of(vocabulary), "no error");
  vocabulary.normalizer = "nmt_nfkc";
  EXPECT_THAT(error_of(vocabulary), HasSubstr("normalizer is \"nmt_nfkc\""));
  vocabulary.pipeline = {{"normalizer", Attributes{{"type", "Precompiled"}, {"precompiled_charsmap", "====="}}}};
  EXPECT_THAT(error_of(vocabulary), HasSubstr("precompiled_charsmap: expected base64"));
  vocabulary.pipeline = {{"normalizer", Attributes{{"type", "NFC"}}}};
  EXPECT_THAT(error_of(vocabulary), HasSubstr("NFC"));
  vocabulary = letters_vocabulary();
  vocabulary.unk_id = -1;
  EXPECT_THAT(error_of(vocabulary), HasSubstr("there is no token for"));
  vocabulary.unk_id = 4;
  EXPECT_THAT(error_of(vocabulary), HasSubstr("unk_id is 4, but the vocabulary has 4 tokens"));
  vocabulary.unk_id = 0;
  vocabulary.add("<0xZZ>", 0, TokenType::byte);
  EXPECT_THAT(error_of(vocabulary), HasSubstr("token 4 is a byte token"));
}

TEST(Tokenizer, ARepeatedTokenCountsOnce) {
  Vocabulary vocabulary = letters_vocabulary();
  vocabulary.add("b", 0, TokenType::user_defined);
  vocabulary.add("b", 0, TokenType::user_defined);
  vocabulary.add("bb", 0, TokenType::user_defined);
  vocabulary.add("a", 0, TokenType::normal);
  vocabulary.add_dummy_prefix = false;
  EXPECT_THAT(Tokenizer(vocabulary).encode("abbb"), ElementsAre(1, 6, 4));
}

TEST(Tokenizer, RefusesToDecodeIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer(letters_vocabulary());
  for (const TokenId id : {-1, 4, INT32_MAX}) EXPECT_THROW((void)tokenizer.decode(std::vector{id}), Error) << id;
}

TEST(TextStream, NeverEndsInsideACharacter) {
  Vocabulary vocabulary = letters_vocabulary();
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(fmt::format("<0x{:02X}>", byte), 0, TokenType::byte);
  const Tokenizer tokenizer(vocabulary);
  const auto byte = [](int value) { return 4 + value; };
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.add(byte(0xf0)), "");
  EXPECT_EQ(stream.add(byte(0x9f)), "");
  EXPECT_EQ(stream.add(byte(0x98)), "");
  EXPECT_EQ(stream.add(byte(0x80)), "\U0001F600");
  EXPECT_EQ(stream.add(byte(0xc3)), "");
  EXPECT_EQ(stream.add(1), "\ufffda") << "the character was not finished";
  EXPECT_EQ(stream.add(byte(0xe2)), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(stream.finish(), "");
}

// The rules are those of docs/formats/tiny-llama.md; the ids are worked out by hand.
TEST(BytePair, MergesByRankWithinWords) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<pad>", 0, TokenType::pad);
  vocabulary.add("<bos>", 0, TokenType::bos);
  vocabulary.add("<eos>", 0, TokenType::eos);
  for (const char* text : {" ", "a", "b", "ab", "abab", "c", "\r"}) vocabulary.add(text, 0, TokenType::normal);
  vocabulary.merges = {{"a", "b"}, {"ab", "ab"}, {"b", "c"}, {"c", "c"}};
  const Tokenizer tokenizer(vocabulary);
  EXPECT_THAT(tokenizer.encode(""), IsEmpty());
  EXPECT_THAT(tokenizer.encode("ababab"), ElementsAre(8, 7));
  EXPECT_THAT(tokenizer.encode("AbC"), ElementsAre(7, 9)) << "a b has the lower rank";
  EXPECT_THAT(tokenizer.encode("bc"), ElementsAre(0)) << "merged, but no token";
  EXPECT_THAT(tokenizer.encode("a b\tc\nc\r c"), ElementsAre(5, 4, 6, 4, 9, 4, 9, 10, 4, 9));
  EXPECT_THAT(tokenizer.encode("cc \u00e9"), ElementsAre(0, 4, 0, 0));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{2, 8, 4, 0, 3}), "abab <unk>") << "control tokens are invisible";
}

TEST(BytePair, TheStreamHoldsBackHalfACharacter) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  for (const char* text : {"\xc3", "\xa9", "x"}) vocabulary.add(text, 0, TokenType::normal);
  const Tokenizer tokenizer(vocabulary);
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.add(0), "");
  EXPECT_EQ(stream.add(1), "\u00e9");
  EXPECT_EQ(stream.add(0), "");
  EXPECT_EQ(stream.add(2), "\xc3x") << "as decode() has it";
  EXPECT_EQ(stream.add(0), "");
  EXPECT_EQ(stream.finish(), "\xc3");
}

}  // namespace
}  // namespace poise
