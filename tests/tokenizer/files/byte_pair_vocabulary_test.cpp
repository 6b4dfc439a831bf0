#include "tokenizer/files/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SourcePtr text(const std::string& content, const std::string& name) {
  std::vector<std::byte> bytes(content.size());
  if (!content.empty()) std::memcpy(bytes.data(), content.data(), content.size());
  return Source::from_memory(std::move(bytes), name);
}

std::vector<std::string> tokens_of(const std::string& vocab) {
  const Vocabulary vocabulary = read_byte_pair_vocabulary(*text(vocab, "vocab.txt"), *text("", "merges.txt"));
  std::vector<std::string> tokens;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) tokens.emplace_back(vocabulary.text(id));
  return tokens;
}

std::string error_of(const std::string& vocab, const std::string& merges = {}) {
  try {
    read_byte_pair_vocabulary(*text(vocab, "vocab.txt"), *text(merges, "merges.txt"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    return error.what();
  }
  return {};
}

TEST(BytePairVocabulary, TheFourSpecialTokensAreAlwaysFirst) {
  EXPECT_THAT(tokens_of("a\nb\n"), ElementsAre("<unk>", "<pad>", "<bos>", "<eos>", "a", "b"));
  EXPECT_THAT(tokens_of("<unk>\t0\n<pad>\t1\n<bos>\t2\n<eos>\t3\na\t4\n"),
              ElementsAre("<unk>", "<pad>", "<bos>", "<eos>", "a"));
  EXPECT_THAT(tokens_of(""), ElementsAre("<unk>", "<pad>", "<bos>", "<eos>"));
}

TEST(BytePairVocabulary, IdsAreOptionalAndTokensMayBeWhiteSpace) {
  EXPECT_THAT(tokens_of(" \t4\na\nb 7\n9\n1\r\n"),
              ElementsAre("<unk>", "<pad>", "<bos>", "<eos>", " ", "a", "", "b", "9", "1"));
  EXPECT_THAT(tokens_of("a-1\n-1\n"), ElementsAre("<unk>", "<pad>", "<bos>", "<eos>", "a-1", "-1"));
}

TEST(BytePairVocabulary, MergesKeepTheirOrder) {
  const Vocabulary vocabulary =
      read_byte_pair_vocabulary(*text("", "vocab.txt"), *text("#version: 0.2\nt h\nth e\n# #\n", "merges.txt"));
  EXPECT_EQ(vocabulary.kind, VocabularyKind::byte_pair);
  EXPECT_EQ(vocabulary.eos_id, 3);
  using Merge = MergeList::value_type;
  EXPECT_THAT(vocabulary.merges, ElementsAre(Merge("t", "h"), Merge("th", "e"), Merge("#", "#")));
}

TEST(BytePairVocabulary, FaultsNameTheLine) {
  EXPECT_THAT(error_of("a 5\nb 5\n"), HasSubstr("vocab.txt: line 2: the id 5 of \"b\" belongs to \"a\" (at 0x4)"));
  EXPECT_THAT(error_of("a\nb\na\n"), HasSubstr("line 3: \"a\" has the id 4 already"));
  EXPECT_THAT(error_of("a 2\n"), HasSubstr("line 1: the id 2 of \"a\" belongs to \"<bos>\""));
  EXPECT_THAT(error_of("<eos> 7\n"), HasSubstr("line 1: the id of <eos> is 3, found 7"));
  EXPECT_THAT(error_of("a 4000000000\n"), HasSubstr("far larger than the number of tokens"));
  EXPECT_THAT(error_of("a 99999999999999999999999\n"), HasSubstr("far larger than the number of tokens"));
  EXPECT_THAT(error_of("a 4\nb -1\n"), HasSubstr("line 2: the id of \"b\" is below 0"));
  for (const std::string merge : {"ab", "a b c", " a", "a "})
    EXPECT_THAT(error_of("", "x y\n" + merge + "\n"), HasSubstr("merges.txt: line 2: expected two tokens"));
}

}  // namespace
}  // namespace poise
