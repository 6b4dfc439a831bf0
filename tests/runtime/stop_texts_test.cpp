#include "runtime/stop_texts.hpp"

#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

namespace poise {
namespace {

// Returns the output for `text` in pieces of `size` bytes.
std::string cut(const std::vector<std::string>& stops, const std::string& text, std::size_t size) {
  StopTexts watch(stops);
  std::string out;
  for (std::size_t i = 0; i < text.size() && !watch.is_stopped(); i += size) out += watch.add(text.substr(i, size));
  return out + watch.finish();
}

TEST(StopTexts, CutExactlyWhateverThePieces) {
  for (std::size_t size = 1; size < 12; ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(cut({"\n\n"}, "one\ntwo\n\nthree", size), "one\ntwo");
    EXPECT_EQ(cut({"User:", "</s>"}, "Hi</User: </s>", size), "Hi</");
    EXPECT_EQ(cut({"aab"}, "aaaab", size), "aa");
    EXPECT_EQ(cut({"abcd", "bc"}, "xabce", size), "xa");
    EXPECT_EQ(cut({"x"}, "", size), "");
    EXPECT_EQ(cut({"never"}, "nevnevenevne", size), "nevnevenevne");
    EXPECT_EQ(cut({"é"}, "caf\xc3\xa9!", size), "caf");
  }
}

// By hand, from the rule: the stop text that ends first, then the one that begins first.
TEST(StopTexts, TheFirstCompleteOneCutsWhateverThePieces) {
  for (std::size_t size = 1; size < 12; ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(cut({". A l", "A"}, "Dog. A little", size), "Dog. ");
    EXPECT_EQ(cut({"A", ". A"}, "Dog. A little", size), "Dog");
    EXPECT_EQ(cut({"abcd", "bc", "abc"}, "xabcd", size), "x");
    EXPECT_EQ(cut({"abcd", "c"}, "xabcd", size), "xab");
  }
}

TEST(StopTexts, HoldsBackNoMoreThanWhatMayBecomeOne) {
  StopTexts watch({"stop", "op!"});
  EXPECT_EQ(watch.add("a st"), "a ");
  EXPECT_EQ(watch.add("one"), "stone");
  EXPECT_EQ(watch.add(" sto"), " ");
  EXPECT_EQ(watch.add("x"), "stox");
  EXPECT_EQ(watch.add("o"), "");
  EXPECT_FALSE(watch.is_stopped());
  EXPECT_EQ(watch.add("p!s"), "");
  EXPECT_TRUE(watch.is_stopped());
  EXPECT_EQ(watch.add("more"), "");
  EXPECT_EQ(watch.finish(), "");
}

// The text that was held back comes before the rest of a character that the tokens do not complete.
TEST(ContinuationStream, EndsInTheOrderOfTheTokens) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  for (const char* text : {"s", "t", "\xc3"}) vocabulary.add(text, 0, TokenType::normal);
  const Tokenizer tokenizer(vocabulary);
  ContinuationStream stream(tokenizer, {}, {"stop", "t\xc3"});
  EXPECT_EQ(stream.add(0), "");
  EXPECT_EQ(stream.add(2), "");
  EXPECT_EQ(stream.finish(), "s\xc3");
  ContinuationStream stopped(tokenizer, {}, {"stop", "t\xc3"});
  EXPECT_EQ(stopped.add(1), "");
  EXPECT_EQ(stopped.add(2), "");
  EXPECT_EQ(stopped.finish(), "");
  EXPECT_TRUE(stopped.is_stopped());
}

TEST(StopTexts, AnEmptyOneIsRefused) { EXPECT_THROW(StopTexts({"a", ""}), Error); }

}  // namespace
}  // namespace poise
