// Breaks every rule of a SentencePiece model once: rules of protocol buffers' encoding, and rules by which
// SentencePiece itself refuses a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support/directories.hpp"
#include "support/hostile_cases.hpp"
#include "tokenizer/sentencepiece/model.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr std::string_view kInTrainer = "(the first field of the trainer)";

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

std::string tag(std::uint64_t number, int wire) { return varint(number << 3 | static_cast<unsigned>(wire)); }
std::string bytes(std::uint64_t number, const std::string& value) {
  return tag(number, kBytes) + varint(value.size()) + value;
}

// Returns the fields of a piece, each with a name.
struct Piece {
  std::string text;
  int type;
};

void add_piece(ByteFile& file, const std::string& at, const Piece& piece) {
  const std::string text = bytes(1, piece.text);
  const std::string score = tag(2, kFixed32) + le(0, 4);
  const std::string type = tag(3, kVarint) + varint(static_cast<std::uint64_t>(piece.type));
  file.raw(at, tag(1, kBytes)).raw(at + " length", varint(text.size() + score.size() + type.size()));
  file.raw(at + " text", text).raw(at + " score", score).raw(at + " type", type);
}

ByteFile model_of(const std::vector<Piece>& pieces, const std::string& trainer = tag(3, kVarint) + varint(2)) {
  ByteFile file;
  for (std::size_t i = 0; i < pieces.size(); ++i) add_piece(file, "piece " + std::to_string(i), pieces[i]);
  return file.raw("trainer", bytes(2, trainer)).raw("normalizer", bytes(3, bytes(1, "identity")));
}

ByteFile whole() { return model_of({{"<unk>", 2}, {"<s>", 3}, {"</s>", 3}, {"a", 1}, {"b", 4}}); }

ByteFile with_byte_pieces(int missing, bool fallback) {
  std::vector<Piece> pieces = {{"<unk>", 2}};
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (static_cast<int>(byte) != missing)
      pieces.push_back({std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6});
  }
  return model_of(pieces, tag(3, kVarint) + varint(2) + tag(35, kVarint) + varint(fallback ? 1 : 0));
}

Vocabulary read(const ByteFile& file) {
  const std::string text = file.bytes();
  const auto content = std::as_bytes(std::span(text));
  return read_sentencepiece(*Source::from_memory({content.begin(), content.end()}, "hostile.model"));
}

// Returns true if a model with this tokenizer runs. Expects that verify() agrees.
bool runs(const ByteFile& file) {
  const support::TemporaryDirectory directory;
  put_small_model(directory.path());
  support::put(directory / "tokenizer.model", file.bytes());
  return expect_run_and_verify_agree(directory.path());
}

void expect_broken(std::span<const Case> cases) {
  for (const Case& rule : cases) {
    SCOPED_TRACE(rule.rule);
    const ByteFile file = rule.file();
    runs(file);
    try {
      read(file);
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), rule.kind) << error.what();
      const auto place = rule.at == kNowhere     ? std::nullopt
                         : rule.at == kInTrainer ? std::optional(file.offset("trainer") + 2)
                                                 : file.offset(rule.at);
      EXPECT_EQ(error.offset(), place) << error.what();
      EXPECT_THAT(error.message(), testing::HasSubstr(std::string(rule.names)));
    }
  }
}

TEST(HostileSentencePiece, TheFilesAreSoundBeforeTheyAreBroken) {
  EXPECT_EQ(read(whole()).size(), 5U);
  EXPECT_TRUE(runs(whole()));
  EXPECT_EQ(read(with_byte_pieces(-1, true)).size(), 257U);
}

TEST(HostileSentencePiece, Encoding) {
  expect_broken(std::array{
      Case{"a tag is whole", [] { return whole().raw("tag", "\x80").raw("more", ""); }, kInvalid, "more", "tag"},
      Case{"a varint has at most 64 bits", [] { return whole().raw("more", std::string(9, '\xff') + '\x02'); },
           kInvalid, "more", "more than 64 bits"},
      Case{"a varint ends", [] { return whole().raw("more", std::string(11, '\x80')); }, kInvalid, "more",
           "more than 64 bits"},
      Case{"field number 0 does not exist", [] { return whole().raw("more", std::string("\x02\0", 2)); }, kInvalid,
           "more", "tag: field number 0"},
      Case{"field numbers end at 2^29 - 1", [] { return whole().raw("more", tag(1ULL << 29, kVarint) + '\1'); },
           kInvalid, "more", "tag: field number 536870912"},
      Case{"there are no groups", [] { return whole().raw("more", tag(9, kGroup)); }, kInvalid, "more",
           "tag: wire type 3"},
      Case{"there is no wire type 6", [] { return whole().raw("more", tag(9, 6)); }, kInvalid, "more",
           "tag: wire type 6"},
      Case{"there is no wire type 7", [] { return whole().raw("more", tag(9, 7)); }, kInvalid, "more",
           "tag: wire type 7"},
      Case{"an unknown field ends inside the file",
           [] { return whole().raw("tag", tag(9, kBytes) + varint(5)).raw("more", "four"); }, kInvalid, "more",
           "unknown field: 5 bytes wanted"},
      Case{"its length does not overflow",
           [] { return whole().raw("tag", tag(9, kBytes) + varint(UINT64_MAX)).raw("more", "four"); }, kInvalid, "more",
           "unknown field"},
      Case{"8 bytes are 8 bytes", [] { return whole().raw("tag", tag(9, kFixed64)).raw("more", "1234567"); }, kInvalid,
           "more", "unknown field: 8 bytes wanted"},
      Case{"4 bytes are 4 bytes", [] { return whole().raw("tag", tag(9, kFixed32)).raw("more", "123"); }, kInvalid,
           "more", "unknown field: 4 bytes wanted"},
      Case{"a piece ends inside the file", [] { return whole().raw("piece 3 length", varint(200)); }, kInvalid,
           "piece 3 text", "pieces: 200 bytes wanted"},
      Case{"a text ends inside its piece", [] { return whole().raw("piece 3 text", "\x0a\x0b"); }, kInvalid,
           "piece 3 score", "piece 3: piece"},
  });
}

TEST(HostileSentencePiece, Fields) {
  expect_broken(std::array{
      Case{"pieces are messages", [] { return whole().raw("more", tag(1, kVarint) + '\1'); }, kInvalid, "more",
           "pieces: wire type 0, expected 2"},
      Case{"a piece's text is text", [] { return whole().raw("piece 3 text", tag(1, kVarint) + varint(300)); },
           kInvalid, "piece 3 text", "piece 3: piece: wire type 0"},
      Case{"a score is a float", [] { return whole().raw("piece 3 score", tag(2, kBytes) + '\3' + "abc"); }, kInvalid,
           "piece 3 score", "piece 3: score: wire type 2, expected 5"},
      Case{"a type is a number", [] { return whole().raw("piece 3 type", tag(3, kBytes) + std::string(1, '\0')); },
           kInvalid, "piece 3 type", "piece 3: type: wire type 2, expected 0"},
      Case{"type 0 does not exist", [] { return whole().raw("piece 3 type", tag(3, kVarint) + std::string(1, '\0')); },
           kInvalid, "piece 3 type", "piece 3: type: 0, expected 1 to 6"},
      Case{"type 7 does not exist", [] { return whole().raw("piece 3 type", tag(3, kVarint) + '\7'); }, kInvalid,
           "piece 3 type", "piece 3: type: 7, expected 1 to 6"},
      Case{"trainer_spec is a message", [] { return whole().raw("trainer", tag(2, kFixed32) + "1234"); }, kInvalid,
           "trainer", "trainer_spec: wire type 5"},
      Case{"normalizer_spec is a message", [] { return whole().raw("normalizer", tag(3, kVarint) + '\1'); }, kInvalid,
           "normalizer", "normalizer_spec: wire type 0"},
  });
}

TEST(HostileSentencePiece, Pieces) {
  expect_broken(std::array{
      Case{"there is an unknown piece",
           [] {
             return model_of({{"a", 1}});
           },
           kInvalid, kNowhere, "none of its 1 pieces is the unknown one"},
      Case{"there are pieces", [] { return model_of({}); }, kInvalid, kNowhere, "none of its 0 pieces"},
      Case{"there is one unknown piece",
           [] {
             return model_of({{"<unk>", 2}, {"a", 2}});
           },
           kInvalid, "piece 1", "a second unknown piece"},
      Case{"a piece has text",
           [] {
             return model_of({{"<unk>", 2}, {"", 1}});
           },
           kInvalid, "piece 1", "piece 1: the text is empty"},
      Case{"a text has no NUL",
           [] {
             return model_of({{"<unk>", 2}, {std::string("a\0b", 3), 1}});
           },
           kInvalid, "piece 1", "piece 1: the text has a NUL"},
      Case{"a piece stands once",
           [] {
             return model_of({{"<unk>", 2}, {"a", 1}, {"a", 4}});
           },
           kInvalid, "piece 2", "piece 2: \"a\" appears twice"},
      Case{"a control piece, too",
           [] {
             return model_of({{"<unk>", 2}, {"<s>", 3}, {"<s>", 3}});
           },
           kInvalid, "piece 2", "piece 2: \"<s>\" appears twice"},
      Case{"byte pieces need byte_fallback", [] { return with_byte_pieces(-1, false); }, kInvalid, "piece 1",
           "byte_fallback is not set"},
      Case{"a byte piece is spelled as one",
           [] { return with_byte_pieces(-1, true).raw("piece 2 text", bytes(1, "<0xG1>")); }, kInvalid, "piece 2",
           "piece 2: \"<0xG1>\" is a byte piece, expected"},
      Case{"byte pieces have upper-case digits",
           [] { return with_byte_pieces(-1, true).raw("piece 11 text", bytes(1, "<0x0a>")); }, kInvalid, "piece 11",
           "\"<0x0a>\" is a byte piece, expected"},
      Case{"every byte has a piece", [] { return with_byte_pieces(0x7F, true); }, kInvalid, kNowhere,
           "there is no piece <0x7F>"},
  });
}

TEST(HostileSentencePiece, Trainer) {
  expect_broken(std::array{
      Case{"model_type 0 does not exist",
           [] {
             return model_of({{"<unk>", 2}}, tag(3, kVarint) + std::string(1, '\0'));
           },
           kInvalid, kInTrainer, "model_type: 0, expected 1 to 4"},
      Case{"model_type 5 does not exist",
           [] {
             return model_of({{"<unk>", 2}}, tag(3, kVarint) + '\5');
           },
           kInvalid, kInTrainer, "model_type: 5, expected 1 to 4"},
      Case{"word models are not read",
           [] {
             return model_of({{"<unk>", 2}}, tag(3, kVarint) + '\3');
           },
           ErrorKind::unsupported, kNowhere, "model_type 3"},
      Case{"character models are not read",
           [] {
             return model_of({{"<unk>", 2}}, tag(3, kVarint) + '\4');
           },
           ErrorKind::unsupported, kNowhere, "model_type 4"},
  });
}

// Cuts are not tested: the file does not state the number of pieces, so a cut between two of them is a valid file.
TEST(HostileSentencePiece, FlippedBits) {
  const std::string model = whole().bytes();
  const support::TemporaryDirectory directory;
  put_small_model(directory.path());
  for (std::size_t bit = 0; bit < 8 * model.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string flipped = model;
    flipped[bit / 8] = static_cast<char>(static_cast<unsigned char>(flipped[bit / 8]) ^ 1U << bit % 8);
    support::put(directory / "tokenizer.model", flipped);
    expect_run_and_verify_agree(directory.path());
    try {
      EXPECT_GE(read(ByteFile().raw("model", flipped)).unk_id, 0);
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported)
          << bit << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace poise::hostile
