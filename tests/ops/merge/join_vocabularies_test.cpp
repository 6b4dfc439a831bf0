// Joined vocabularies. Expected tokens follow by hand from the rules of docs/merging.md; tests/ops/merge_tokenizers.py
// compares byte-level BPE and SentencePiece with algorithms of its own.
#include "ops/merge/join_vocabularies.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using support::error_of;

struct Token {
  std::string text;
  float score = 0;
  TokenType type = TokenType::normal;
};

void add_all(Vocabulary& vocabulary, const std::vector<Token>& tokens) {
  for (const Token& token : tokens) vocabulary.add(token.text, token.score, token.type);
}

Vocabulary make_pieces(VocabularyKind kind, const std::vector<Token>& tokens) {
  Vocabulary vocabulary;
  vocabulary.kind = kind;
  vocabulary.unk_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.add_dummy_prefix = false;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<s>", 0, TokenType::bos);
  add_all(vocabulary, tokens);
  return vocabulary;
}

Vocabulary make_pipeline(const std::string& type, const std::vector<Token>& tokens, Attributes model = {}) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  vocabulary.add_dummy_prefix = false;
  model.set("type", type);
  vocabulary.pipeline.set("model", std::move(model));
  add_all(vocabulary, tokens);
  return vocabulary;
}

JoinedVocabulary join(const Vocabulary& a, const Vocabulary& b) {
  const std::vector<NamedVocabulary> models = {{"a", a}, {"b", b}};
  return join_vocabularies(models, 0, true);
}

std::vector<std::string> list_texts(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) texts.emplace_back(vocabulary.text(id));
  return texts;
}

std::vector<float> list_scores(const Vocabulary& vocabulary) {
  std::vector<float> scores;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) scores.push_back(vocabulary.score(id));
  return scores;
}

TEST(JoinVocabularies, KeepsOneAndFindsTheOther) {
  const std::vector<NamedVocabulary> models = {{"a", make_pieces(VocabularyKind::sentencepiece_bpe, {{"x"}, {"y"}})},
                                               {"b", make_pieces(VocabularyKind::sentencepiece_bpe, {{"z"}, {"x"}})}};
  const JoinedVocabulary a = join_vocabularies(models, 0, false);
  EXPECT_EQ(a.vocabulary, models[0].vocabulary);
  EXPECT_THAT(a.ids[0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(a.ids[1], ElementsAre(0, 1, 3, -1));
  const JoinedVocabulary b = join_vocabularies(models, 1, false);
  EXPECT_EQ(b.vocabulary, models[1].vocabulary);
  EXPECT_THAT(b.ids[0], ElementsAre(0, 1, -1, 2));
  EXPECT_THAT(a.notes, IsEmpty());
}

// The scores of new pieces are below those of all others, in the order of their own scores.
TEST(JoinVocabularies, SentencePieceBpe) {
  const JoinedVocabulary joined =
      join(make_pieces(VocabularyKind::sentencepiece_bpe, {{"a", -3.5F}, {"b", -1}, {"c", -2}, {"ab", -1}}),
           make_pieces(VocabularyKind::sentencepiece_bpe, {{"bc", -9}, {"a"}, {"abc", -1}, {"b"}, {"c"}}));
  EXPECT_THAT(list_texts(joined.vocabulary), ElementsAre("<unk>", "<s>", "a", "b", "c", "ab", "bc", "abc"));
  EXPECT_THAT(list_scores(joined.vocabulary), ElementsAre(0, 0, -3.5F, -1, -2, -1, -6, -5));
  EXPECT_THAT(joined.ids[0], ElementsAre(0, 1, 2, 3, 4, 5, -1, -1));
  EXPECT_THAT(joined.ids[1], ElementsAre(0, 1, 3, 5, 6, -1, 2, 4));
  // Without "ab" in front, "bc" would be found.
  EXPECT_THAT(Tokenizer(joined.vocabulary).encode("abcbc"), ElementsAre(7, 6));
}

// A Unigram's scores are log probabilities, and stay.
TEST(JoinVocabularies, Unigram) {
  const JoinedVocabulary joined =
      join(make_pieces(VocabularyKind::sentencepiece_unigram, {{"a", -3}, {"b", -3}}),
           make_pieces(VocabularyKind::sentencepiece_unigram, {{"ab", -5}, {"ba", -7}, {"a", -1}, {"b", -1}}));
  EXPECT_THAT(list_scores(joined.vocabulary), ElementsAre(0, 0, -3, -3, -5, -7));
  EXPECT_THAT(Tokenizer(joined.vocabulary).encode("abba"), ElementsAre(4, 3, 2));
}

TEST(JoinVocabularies, UnigramKeepsWideScores) {
  const Vocabulary a = make_pipeline("Unigram", {{"a", -1}, {"b", -2}});
  const Vocabulary b = make_pipeline("Unigram", {{"c", -0.1F}}, {{"scores", Value::Array{-0.1}}});
  const JoinedVocabulary joined = join(a, b);
  const auto* model = joined.vocabulary.pipeline.get_if<Attributes>("model");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(to_json(*model->find("scores")), "[-1.0,-2.0,-0.1]");
}

// Ids of a Unigram in tokenizer.json are places in a list, which added tokens end.
TEST(JoinVocabularies, RefusesTokensAfterAddedOnesOfAUnigram) {
  const Vocabulary a = make_pipeline("Unigram", {{"a"}, {"<x>", 0, TokenType::control}},
                                     {{"added_only", Value::Array{std::uint64_t{1}}}});
  EXPECT_THAT(error_of([&] { join(a, make_pipeline("Unigram", {{"c"}})); }).message(),
              HasSubstr("b has 1 token that a lacks"));
  EXPECT_EQ(join(a, make_pipeline("Unigram", {{"a"}})).vocabulary, a);
}

// Special tokens come last. Flags of the first model that has one count.
TEST(JoinVocabularies, AddedTokens) {
  const auto make = [](std::uint64_t id, const std::string& text, bool special, bool strip) {
    return Attributes{{"id", id}, {"content", text}, {"special", special}, {"lstrip", strip}};
  };
  Vocabulary a = make_pipeline("BPE", {{"a"}, {"<x>", 0, TokenType::control}});
  a.pipeline.set("added_tokens", Value::Array{make(1, "<x>", true, true)});
  a.tokenizer_config.set("added_tokens_decoder", Attributes{{"1", make(1, "<x>", true, true)}});
  Vocabulary b =
      make_pipeline("BPE", {{"<y>", 0, TokenType::user_defined}, {"<x>", 0, TokenType::control}, {"a"}, {"b"}});
  b.pipeline.set("added_tokens", Value::Array{make(0, "<y>", false, true), make(1, "<x>", true, false)});
  const JoinedVocabulary joined = join(a, b);
  EXPECT_THAT(list_texts(joined.vocabulary), ElementsAre("a", "<x>", "b", "<y>"));
  EXPECT_EQ(joined.vocabulary.type(3), TokenType::user_defined);
  EXPECT_THAT(joined.ids[1], ElementsAre(2, 1, 3, 0));
  EXPECT_EQ(*joined.vocabulary.pipeline.find("added_tokens"),
            Value(Value::Array{make(1, "<x>", true, true), make(3, "<y>", false, true)}));
  const auto* model = joined.vocabulary.pipeline.get_if<Attributes>("model");
  EXPECT_EQ(*model->find("added_only"), Value(Value::Array{std::uint64_t{3}}));
  const auto* decoder = joined.vocabulary.tokenizer_config.get_if<Attributes>("added_tokens_decoder");
  ASSERT_EQ(decoder->size(), 2U);
  EXPECT_EQ(decoder->find("3")->get_if<Attributes>()->find("id"), nullptr);
}

// The order of new tokens stays where float32 has no place for steps of 1.
TEST(JoinVocabularies, LargeScores) {
  const auto make = [](const std::vector<std::pair<std::string, float>>& tokens) {
    Vocabulary vocabulary;
    vocabulary.kind = VocabularyKind::sentencepiece_bpe;
    for (const auto& [text, score] : tokens) vocabulary.add(text, score, TokenType::normal);
    return vocabulary;
  };
  const Vocabulary own = make({{"a", -1e9F}, {"b", -1e9F}, {"c", -1e9F}});
  const Vocabulary joined = join(own, make({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", -2}, {"bc", -1}})).vocabulary;
  EXPECT_GT(-1e9F, joined.score(4));
  EXPECT_GT(joined.score(4), joined.score(3));
}

// added_tokens_decoder may list a token that has no row: its id goes to a token of the other model.
TEST(JoinVocabularies, ListedTokensWithoutRow) {
  const auto make = [](const std::string& text) { return Attributes{{"content", text}, {"special", true}}; };
  Vocabulary a = make_pipeline("BPE", {{"a"}, {"<x>", 0, TokenType::control}});
  a.tokenizer_config.set("added_tokens_decoder", Attributes{{"1", make("<x>")}, {"2", make("[PAD]")}});
  const Vocabulary b = make_pipeline("BPE", {{"a"}, {"<y>", 0, TokenType::control}});
  Vocabulary joined = join(a, b).vocabulary;
  const auto* decoder = joined.tokenizer_config.get_if<Attributes>("added_tokens_decoder");
  ASSERT_EQ(decoder->size(), 2U);
  EXPECT_EQ(*decoder->find("2")->get_if<Attributes>()->get_if<std::string>("content"), "<y>");
  joined = join(a, make_pipeline("BPE", {{"a"}, {"b"}})).vocabulary;
  EXPECT_EQ(joined.tokenizer_config.get_if<Attributes>("added_tokens_decoder")->size(), 1U);
}

// One vocabulary lists its merges; those of the other follow from scores.
TEST(JoinVocabularies, MergesOfScores) {
  Vocabulary listed = make_pipeline("BPE", {{"a"}, {"b"}, {"c"}, {"ab"}});
  listed.merges = {{"a", "b"}};
  const Vocabulary scored = make_pipeline("BPE", {{"a", 0}, {"b", -1}, {"c", -2}, {"bc", -3}, {"ab", -4}, {"abc", -5}},
                                          {{"merge_by_score", true}});
  const Vocabulary first = join(listed, scored).vocabulary;
  EXPECT_THAT(list_texts(first), ElementsAre("a", "b", "c", "ab", "bc", "abc"));
  EXPECT_EQ(first.merges, MergeList({{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "bc"}}));
  EXPECT_THAT(Tokenizer(first).encode("abcbc"), ElementsAre(5, 4));
  listed.merges = {{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"bc", "c"}};
  Vocabulary longer = listed;
  longer.add("bcc", 0, TokenType::normal);
  longer.add("bc", 0, TokenType::normal);
  const Vocabulary second = join(scored, longer).vocabulary;
  EXPECT_THAT(list_texts(second), ElementsAre("a", "b", "c", "bc", "ab", "abc", "bcc"));
  EXPECT_EQ(second.score(6), -6);
}

TEST(JoinVocabularies, LeavesOutUnusedTokens) {
  const Vocabulary a = make_pieces(VocabularyKind::sentencepiece_bpe, {{"a"}});
  const Vocabulary b = make_pieces(VocabularyKind::sentencepiece_bpe, {{"[PAD2]", 0, TokenType::unused}, {"a"}});
  EXPECT_EQ(join(a, b).vocabulary, a);
}

TEST(JoinVocabularies, RefusesOtherKinds) {
  const Vocabulary pieces = make_pieces(VocabularyKind::sentencepiece_bpe, {{"a"}});
  const auto check = [&](const Vocabulary& other, const std::string& expected) {
    const Error error = error_of([&] { join(pieces, other); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("the tokenizer of a is BPE of SentencePiece, and that of b is " + expected));
  };
  check(make_pieces(VocabularyKind::sentencepiece_unigram, {{"a"}}), "Unigram of SentencePiece.");
  check(make_pieces(VocabularyKind::sentencepiece_bpe, {{"<0x00>", 0, TokenType::byte}}),
        "BPE of SentencePiece with byte fallback.");
  check(make_pipeline("BPE", {{"a"}}), "BPE of tokenizer.json.");
  check(make_pipeline("BPE", {{"a"}}, {{"byte_fallback", true}}), "BPE of tokenizer.json with byte fallback.");
  check(make_pipeline("WordPiece", {{"a"}}, {{"continuing_subword_prefix", "##"}}),
        "WordPiece of tokenizer.json with continuing_subword_prefix \"##\".");
  Vocabulary bytes = make_pipeline("BPE", {{"a"}});
  bytes.pipeline.set("pre_tokenizer", Attributes{{"type", "ByteLevel"}});
  check(bytes, "BPE of tokenizer.json over bytes.");
}

TEST(JoinVocabularies, NotesOtherCuts) {
  Vocabulary a = make_pipeline("BPE", {{"a"}});
  Vocabulary b = make_pipeline("BPE", {{"b"}});
  b.pipeline.set("normalizer", Attributes{{"type", "Lowercase"}});
  EXPECT_THAT(join(a, b).notes,
              ElementsAre("the tokenizer of b normalizes or cuts texts in another way than that of a, which the result "
                          "follows"));
}

}  // namespace
}  // namespace poise
