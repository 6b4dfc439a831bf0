#include "tokenizer/sentencepiece/model.hpp"

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "tokenizer/sentencepiece_bytes.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

const std::string kBpe = bytes_field(2, varint_field(3, 2));
const std::string kUnknown = piece("<unk>", 2);

Vocabulary read(const std::string& file) {
  std::vector<std::byte> bytes;
  for (const char byte : file) bytes.push_back(static_cast<std::byte>(byte));
  return read_sentencepiece(*Source::from_memory(std::move(bytes), "tokenizer.model"));
}

std::string error_of(const std::string& file) {
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SentencePieceModel, ReadsPiecesAndTheirTypes) {
  const Vocabulary vocabulary =
      read(kUnknown + piece("<s>", 3) + piece("</s>", 3) + piece("<pad>", 3) + piece("a", 1) + piece("b", 5) +
           piece("c", 4) + piece("<sep>", 3) + kBpe +
           bytes_field(3, bytes_field(1, "identity") + varint_field(3, 0) + varint_field(4, 0)));
  ASSERT_EQ(vocabulary.size(), 8U);
  EXPECT_EQ(vocabulary.kind, VocabularyKind::sentencepiece_bpe);
  EXPECT_EQ(vocabulary.unk_id, 0);
  EXPECT_EQ(vocabulary.bos_id, 1);
  EXPECT_EQ(vocabulary.eos_id, 2);
  EXPECT_EQ(vocabulary.pad_id, 3);
  EXPECT_EQ(vocabulary.text(4), "a");
  EXPECT_EQ(vocabulary.score(4), 1.5F);
  const std::vector<TokenType> expected = {TokenType::unknown,      TokenType::bos,    TokenType::eos,
                                           TokenType::pad,          TokenType::normal, TokenType::unused,
                                           TokenType::user_defined, TokenType::control};
  for (std::size_t id = 0; id < expected.size(); ++id) EXPECT_EQ(vocabulary.type(id), expected[id]) << id;
  EXPECT_EQ(vocabulary.normalizer, "identity");
  EXPECT_FALSE(vocabulary.add_dummy_prefix);
  EXPECT_FALSE(vocabulary.remove_extra_whitespaces);
}

TEST(SentencePieceModel, AbsentFieldsHaveSentencePiecesDefaults) {
  const Vocabulary vocabulary = read(kUnknown);
  EXPECT_EQ(vocabulary.kind, VocabularyKind::sentencepiece_unigram);
  EXPECT_EQ(vocabulary.bos_id, -1);
  EXPECT_EQ(vocabulary.eos_id, -1);
  EXPECT_EQ(vocabulary.pad_id, -1);
  EXPECT_TRUE(vocabulary.add_dummy_prefix);
  EXPECT_TRUE(vocabulary.remove_extra_whitespaces);
}

TEST(SentencePieceModel, SpecialPiecesGoByTheirNamesInTheTrainerSpec) {
  const std::string trainer = bytes_field(2, varint_field(3, 2) + bytes_field(46, "[CLS]") + bytes_field(47, "x"));
  const Vocabulary vocabulary = read(kUnknown + piece("<s>", 3) + piece("[CLS]", 3) + piece("x", 1) + trainer);
  EXPECT_EQ(vocabulary.bos_id, 2);
  EXPECT_EQ(vocabulary.type(1), TokenType::control);
  EXPECT_EQ(vocabulary.eos_id, -1) << "a normal piece is not an end of text";
}

TEST(SentencePieceModel, UnknownFieldsAreSkipped) {
  const std::string extra = std::string("\x99\x0d\x01\x02\x03\x04\x05\x06\x07\x08", 10) +
                            std::string("\x9d\x0d\x01\x02\x03\x04", 6) + varint_field(9, 1) +
                            bytes_field(4, "self test");
  EXPECT_EQ(read(extra + kUnknown + extra + kBpe).size(), 1U);
}

TEST(SentencePieceModel, ANormalizerThatChangesTextsIsNamed) {
  const auto with = [](const std::string& normalizer) {
    return read(kUnknown + kBpe + bytes_field(3, normalizer)).normalizer;
  };
  EXPECT_EQ(with(bytes_field(1, "nmt_nfkc") + bytes_field(2, "rules")), "nmt_nfkc");
  EXPECT_EQ(with(bytes_field(1, "nmt_nfkc")), "identity") << "without rules nothing is changed";
  EXPECT_EQ(with(bytes_field(2, "rules")), "precompiled");
  EXPECT_EQ(with(varint_field(5, 0)), "identity") << "what becomes of spaces is not a name";
}

// base64 of "rules": cnVsZXM= (coreutils).
TEST(SentencePieceModel, TheRulesOfTheNormalizersAreKept) {
  const auto pipeline = [](const std::string& normalizer) {
    return read(kUnknown + kBpe + bytes_field(3, normalizer)).pipeline;
  };
  EXPECT_EQ(pipeline(bytes_field(1, "nmt_nfkc") + bytes_field(2, "rules")),
            (Attributes{{"normalizer", Attributes{{"type", "Precompiled"}, {"precompiled_charsmap", "cnVsZXM="}}}}));
  EXPECT_EQ(pipeline(bytes_field(1, "nmt_nfkc")), Attributes());
  const Attributes rules{{"type", "Precompiled"}, {"precompiled_charsmap", "cnVsZXM="}};
  EXPECT_EQ(pipeline(bytes_field(2, "rules") + varint_field(5, 0)),
            (Attributes{{"normalizer", rules}, {"escape_whitespaces", false}}));
  EXPECT_EQ(read(kUnknown + bytes_field(2, varint_field(3, 2) + varint_field(24, 1))).pipeline,
            (Attributes{{"treat_whitespace_as_suffix", true}}));
  Attributes denormalizer = rules;
  denormalizer.set("add_dummy_prefix", false);
  denormalizer.set("remove_extra_whitespaces", true);
  denormalizer.set("escape_whitespaces", true);
  const Vocabulary vocabulary = read(kUnknown + kBpe + bytes_field(5, bytes_field(2, "rules") + varint_field(3, 0)));
  EXPECT_EQ(vocabulary.pipeline, (Attributes{{"denormalizer", denormalizer}}));
  EXPECT_EQ(read(format_sentencepiece(vocabulary)), vocabulary);
}

TEST(SentencePieceModel, ErrorsNameFieldAndOffset) {
  EXPECT_EQ(error_of(""), "tokenizer.model: SentencePiece model: none of its 0 pieces is the unknown one");
  EXPECT_EQ(error_of(kUnknown + bytes_field(1, bytes_field(1, "abcdef").substr(0, 5))),
            "tokenizer.model: SentencePiece model: piece 1: piece: 6 bytes wanted, 3 left (at 0x14)");
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("tag: wire type 6 of field 14"));
  EXPECT_THAT(error_of(std::string("\x02\x00", 2)), HasSubstr("field number 0"));
  EXPECT_THAT(error_of(std::string(11, '\xff')), HasSubstr("a varint of more than 64 bits"));
  EXPECT_THAT(error_of(varint_field(1, 3)), HasSubstr("pieces: wire type 0, expected 2"));
  EXPECT_THAT(error_of(piece("a", 7)), HasSubstr("piece 0: type: 7, expected 1 to 6"));
  EXPECT_THAT(error_of(kUnknown + bytes_field(2, varint_field(3, 5))), HasSubstr("model_type: 5, expected 1 to 4"));
}

// Such a score cannot be compared with others.
TEST(SentencePieceModel, RefusesScoresThatAreNotFinite) {
  for (const float score : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(error_of(kUnknown + piece("a", 1, score)), HasSubstr("expected a finite number"));
  }
}

TEST(SentencePieceModel, RefusesTheModelsThatSentencePieceRefuses) {
  EXPECT_THAT(error_of(kBpe + piece("a", 1)), HasSubstr("none of its 1 pieces is the unknown one"));
  EXPECT_THAT(error_of(kUnknown + piece("<unk2>", 2)),
              HasSubstr("piece 1: a second unknown piece; the first is piece 0"));
  EXPECT_THAT(error_of(kUnknown + piece("a", 1) + piece("a", 5)), HasSubstr("piece 2: \"a\" appears twice"));
  EXPECT_THAT(error_of(kUnknown + piece("", 1)), HasSubstr("piece 1: the text is empty"));
  EXPECT_THAT(error_of(kUnknown + piece(std::string("a\0b", 3), 1)), HasSubstr("piece 1: the text has a NUL"));
  EXPECT_THAT(error_of(kUnknown + piece("<0x41>", 6)), HasSubstr("byte_fallback is not set"));
  const std::string fallback = bytes_field(2, varint_field(3, 2) + varint_field(35, 1));
  EXPECT_THAT(error_of(kUnknown + fallback + piece("<0x4>", 6)), HasSubstr("expected <0x00> to <0xFF>"));
  EXPECT_THAT(error_of(kUnknown + fallback + piece("<0x00>", 6)), HasSubstr("no piece <0x01>"));
  EXPECT_THAT(error_of(kUnknown + bytes_field(2, varint_field(3, 3))), HasSubstr("model_type 3"));
}

TEST(SentencePieceModel, EveryTruncationIsAnErrorOrAShorterVocabulary) {
  const std::string file = kUnknown + kBpe + piece("<s>", 3) +
                           bytes_field(3, bytes_field(1, "identity") + varint_field(3, 0)) + piece("abc", 1);
  for (std::size_t length = 0; length < file.size(); ++length) {
    try {
      EXPECT_LT(read(file.substr(0, length)).size(), 3U) << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << error.what();
    }
  }
}

// The expected values come from the SentencePiece library itself.
TEST(SentencePieceModel, AgreesWithSentencePieceAboutARealModel) {
  const std::filesystem::path path = shared_directory() / "data/mistral-7b-v0.1/tokenizer.model";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  sentencepiece::SentencePieceProcessor reference;
  ASSERT_TRUE(reference.Load(path.string()).ok());
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    const Vocabulary vocabulary = read_sentencepiece(*Source::open(path, mode));
    ASSERT_EQ(vocabulary.size(), static_cast<std::size_t>(reference.GetPieceSize()));
    EXPECT_EQ(vocabulary.bos_id, reference.bos_id());
    EXPECT_EQ(vocabulary.eos_id, reference.eos_id());
    EXPECT_EQ(vocabulary.pad_id, reference.pad_id());
    EXPECT_EQ(vocabulary.unk_id, reference.unk_id());
    for (int id = 0; id < reference.GetPieceSize(); ++id) {
      const auto at = static_cast<std::size_t>(id);
      const TokenType type = vocabulary.type(at);
      ASSERT_EQ(vocabulary.text(at), reference.IdToPiece(id));
      ASSERT_EQ(vocabulary.score(at), reference.GetScore(id));
      ASSERT_EQ(type == TokenType::byte, reference.IsByte(id)) << id;
      ASSERT_EQ(
          type == TokenType::control || type == TokenType::bos || type == TokenType::eos || type == TokenType::pad,
          reference.IsControl(id))
          << id;
      ASSERT_EQ(type == TokenType::unknown, reference.IsUnknown(id)) << id;
      ASSERT_EQ(type == TokenType::unused, reference.IsUnused(id)) << id;
    }
    EXPECT_EQ(vocabulary.normalizer, "identity");
    EXPECT_TRUE(vocabulary.add_dummy_prefix);
    EXPECT_FALSE(vocabulary.remove_extra_whitespaces);
  }
}

}  // namespace
}  // namespace poise
