// Compares byte pair encoding of texts that are cut at boundaries with merging step by step, without cuts, as the
// definition has it.
#include "tokenizer/tokens/token_boundaries.hpp"

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/tokenizer.hpp>

namespace poise {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kLetters = {"a",      "b",      " ",      "\u00e9",     "\u0434",
                                           "\u6f22", "\u6c34", "\u5b57", "\U0001F600", "\U0001F601"};

std::string random_text(std::mt19937& random, std::size_t letters) {
  std::string text;
  while (letters-- > 0) text += kLetters[random() % kLetters.size()];
  return text;
}

std::string mapped(std::string_view bytes) {
  std::string text;
  byte_level::append_encoded(text, bytes);
  return text;
}

// Holds tokens, and pairs that merge, by rank.
struct Merges {
  std::vector<std::string> tokens;  // bytes, or characters
  std::map<std::string, TokenId> ids;
  std::map<std::pair<TokenId, TokenId>, std::pair<std::size_t, TokenId>> ranks;
  std::vector<std::pair<TokenId, TokenId>> pairs;

  void add(const std::string& token) {
    if (ids.emplace(token, static_cast<TokenId>(tokens.size())).second) tokens.push_back(token);
  }
  void add(TokenId left, TokenId right) {
    const std::string joined = tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    add(joined);
    if (ranks.emplace(std::pair{left, right}, std::pair{pairs.size(), ids.at(joined)}).second)
      pairs.emplace_back(left, right);
  }

  // Merges the pair of the lowest rank, of equal ones the leftmost, until there is none.
  std::vector<TokenId> merge(std::vector<TokenId> tokens_of_text) const {
    while (true) {
      std::size_t best = SIZE_MAX;
      std::size_t place = 0;
      TokenId merged = -1;
      for (std::size_t i = 0; i + 1 < tokens_of_text.size(); ++i) {
        const auto found = ranks.find({tokens_of_text[i], tokens_of_text[i + 1]});
        if (found == ranks.end() || found->second.first >= best) continue;
        best = found->second.first;
        place = i;
        merged = found->second.second;
      }
      if (best == SIZE_MAX) return tokens_of_text;
      tokens_of_text[place] = merged;
      tokens_of_text.erase(tokens_of_text.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
  }
};

// Adds merges of neighbours in some text, as training finds them: within characters, across them, and with parts of
// them.
void grow(Merges& merges, std::mt19937& random, std::vector<TokenId> text, int count) {
  for (int i = 0; i < count; ++i) {
    text = merges.merge(std::move(text));
    if (text.size() < 2) return;
    const std::size_t at = random() % (text.size() - 1);
    merges.add(text[at], text[at + 1]);
  }
}

TEST(TokenBoundaries, GiveTheTokensOfTheWholeTextInBytes) {
  std::mt19937 random(5);
  std::size_t cuts = 0;
  for (int round = 0; round < 60; ++round) {
    Merges merges;
    for (int byte = 0; byte < 256; ++byte) merges.add(std::string(1, static_cast<char>(byte)));
    const auto bytes_of = [&](const std::string& text) {
      std::vector<TokenId> ids;
      for (const char byte : text) ids.push_back(static_cast<TokenId>(static_cast<unsigned char>(byte)));
      return ids;
    };
    grow(merges, random, bytes_of(random_text(random, 40)), 10 + static_cast<int>(random() % 60));
    Vocabulary vocabulary;
    vocabulary.kind = VocabularyKind::pipeline;
    for (const std::string& token : merges.tokens) vocabulary.add(mapped(token), 0, TokenType::normal);
    for (const auto& [left, right] : merges.pairs) {
      vocabulary.merges.emplace_back(mapped(merges.tokens[static_cast<std::size_t>(left)]),
                                     mapped(merges.tokens[static_cast<std::size_t>(right)]));
    }
    vocabulary.pipeline = {
        {"pre_tokenizer", Attributes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
        {"model", Attributes{{"type", "BPE"}, {"ignore_merges", round % 3 == 0}}}};
    const Tokenizer tokenizer(vocabulary);
    for (int texts = 0; texts < 20; ++texts) {
      const std::string text = random_text(random, 20 + random() % 60);
      EXPECT_EQ(tokenizer.encode(text), merges.merge(bytes_of(text))) << round;
    }
    TokenBoundaries boundaries(TokenBoundaries::Unit::bytes);
    for (const std::string& token : merges.tokens) boundaries.add(mapped(token));
    boundaries.for_each_run(mapped(random_text(random, 100)), [&](std::string_view) { ++cuts; });
  }
  EXPECT_GT(cuts, 1000U);  // otherwise the test would be too weak
}

TEST(TokenBoundaries, GiveTheTokensOfTheWholeTextInCharacters) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    Merges merges;
    for (const std::string& letter : kLetters) merges.add(letter);
    const auto letters_of = [&](std::string_view text) {
      std::vector<TokenId> ids;
      unicode::for_each_character(
          text, [&](char32_t, std::string_view letter) { ids.push_back(merges.ids.at(std::string(letter))); });
      return ids;
    };
    grow(merges, random, letters_of(random_text(random, 40)), 10 + static_cast<int>(random() % 40));
    Vocabulary vocabulary;
    vocabulary.kind = VocabularyKind::pipeline;
    for (const std::string& token : merges.tokens) vocabulary.add(token, 0, TokenType::normal);
    for (const auto& [left, right] : merges.pairs) {
      vocabulary.merges.emplace_back(merges.tokens[static_cast<std::size_t>(left)],
                                     merges.tokens[static_cast<std::size_t>(right)]);
    }
    vocabulary.pipeline = {{"model", Attributes{{"type", "BPE"}}}};
    const Tokenizer tokenizer(vocabulary);
    for (int texts = 0; texts < 20; ++texts) {
      const std::string text = random_text(random, 20 + random() % 60);
      EXPECT_EQ(tokenizer.encode(text), merges.merge(letters_of(text))) << round;
    }
  }
}

std::vector<std::string> runs(const TokenBoundaries& boundaries, std::string_view text) {
  std::vector<std::string> all;
  boundaries.for_each_run(text, [&](std::string_view run) { all.emplace_back(run); });
  return all;
}

TEST(TokenBoundaries, ArePlacesThatNoTokenSpans) {
  TokenBoundaries characters(TokenBoundaries::Unit::characters);
  characters.add("ab");
  characters.add("b\u6f22");
  characters.add("\xff");  // no text contains it
  EXPECT_THAT(runs(characters, "abab\u6f22a"), ElementsAre("ab", "ab\u6f22", "a"));
  EXPECT_THAT(runs(characters, ""), ElementsAre());
  // A token that ends inside a character.
  TokenBoundaries bytes(TokenBoundaries::Unit::bytes);
  bytes.add(mapped("a\xe6"));
  EXPECT_THAT(runs(bytes, mapped("a\u6f22\u6f22")), ElementsAre(mapped("a\u6f22"), mapped("\u6f22")));
  EXPECT_THAT(runs(bytes, mapped("a\u5b57b")), ElementsAre(mapped("a"), mapped("\u5b57"), mapped("b")))
      << "which begins with another byte";
  // A text outside the alphabet, or whose bytes are not UTF-8, stays whole.
  EXPECT_THAT(runs(bytes, "\u6f22\u6f22"), ElementsAre("\u6f22\u6f22"));
  EXPECT_THAT(runs(bytes, mapped("ab\xe6")), ElementsAre(mapped("ab\xe6")));
}

// The texts repeat one character, which the vocabularies merge.
TEST(TokenBoundaries, ManyEqualCharactersTakeNoQuadraticTime) {
  for (const bool byte_level : {false, true}) {
    for (const std::string& letter : kLetters) {
      Merges merges;
      Vocabulary vocabulary;
      vocabulary.kind = VocabularyKind::pipeline;
      const auto spelled = [&](const std::string& text) { return byte_level ? mapped(text) : text; };
      if (byte_level) {
        for (int byte = 0; byte < 256; ++byte) merges.add(std::string(1, static_cast<char>(byte)));
      } else {
        merges.add(letter);
      }
      TokenId last = merges.ids.at(letter.substr(0, byte_level ? 1 : letter.size()));
      for (std::size_t i = 1; byte_level && i < letter.size(); ++i) {
        merges.add(last, merges.ids.at(letter.substr(i, 1)));
        last = merges.ids.at(letter.substr(0, i + 1));
      }
      for (int i = 0; i < 4; ++i) {
        merges.add(last, last);
        last = merges.ids.at(merges.tokens[static_cast<std::size_t>(last)] +
                             merges.tokens[static_cast<std::size_t>(last)]);
      }
      for (const std::string& token : merges.tokens) vocabulary.add(spelled(token), 0, TokenType::normal);
      for (const auto& [left, right] : merges.pairs) {
        vocabulary.merges.emplace_back(spelled(merges.tokens[static_cast<std::size_t>(left)]),
                                       spelled(merges.tokens[static_cast<std::size_t>(right)]));
      }
      vocabulary.pipeline = {
          {"pre_tokenizer",
           byte_level ? Value(Attributes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}})
                      : Value()},
          {"model", Attributes{{"type", "BPE"}}}};
      constexpr std::size_t kCount = 1 << 18;
      std::string text;
      for (std::size_t i = 0; i < kCount; ++i) text += letter;
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<TokenId> ids = Tokenizer(vocabulary).encode(text);
      EXPECT_EQ(ids, std::vector<TokenId>(kCount / 16, last)) << letter;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << letter;
    }
  }
}

}  // namespace
}  // namespace poise
