#include "tokenizer/tokens/token_index.hpp"

#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

TEST(PrefixTrie, FindsTheLongestTextThatAnotherBeginsWith) {
  PrefixTrie trie;
  trie.add("ab", 1);
  trie.add("abcd", 2);
  trie.add("ab", 3);  // of equal texts the first counts
  EXPECT_EQ(trie.find_longest("abc").length, 2U);
  EXPECT_EQ(trie.find_longest("abc").value, 1);
  EXPECT_EQ(trie.find_longest("abcde").length, 4U);
  EXPECT_EQ(trie.find_longest("b").value, -1);
  EXPECT_EQ(trie.find_longest("").value, -1);
}

// Without a limit, a text of one letter would take as many steps at each place as the longest token has bytes.
TEST(PrefixTrie, RefusesLongTexts) {
  PrefixTrie trie;
  trie.add(std::string(PrefixTrie::kLongest, 'a'), 0);
  const Error error = support::error_of([&] { trie.add(std::string(PrefixTrie::kLongest + 1, 'a'), 7); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(error.message(), "tokenizer: token 7 has 1025 bytes, more than 1024");
}

}  // namespace
}  // namespace poise
