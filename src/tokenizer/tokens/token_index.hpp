// Indexes the tokens of a vocabulary by their texts, and finds those that are prefixes of a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/text_table.hpp"

namespace poise {

// Finds all tokens of a vocabulary by their texts. It stores no text, so copies of the vocabulary share one index.
class TokenTexts {
 public:
  explicit TokenTexts(const Vocabulary& vocabulary);

  // Returns the index of the vocabulary; null if there is none, or if tokens have been added since it was made.
  static const std::shared_ptr<const TokenTexts>& get(const Vocabulary& vocabulary) { return vocabulary.index_.texts; }
  static void set(Vocabulary& vocabulary, std::shared_ptr<const TokenTexts> texts) {
    vocabulary.index_.texts = std::move(texts);
  }

  // Returns the first token with that text. Requires: the index is of this vocabulary, or of a copy.
  std::optional<TokenId> find(const Vocabulary& vocabulary, std::string_view text) const;
  // Finds many texts; -1 if missing.
  void find_many(const Vocabulary& vocabulary, std::span<const std::string_view> texts, std::span<TokenId> ids) const;

  // Finds tokens by the hashes of their texts, in half the time of find_many(). The id of a text is wrong with a
  // probability of about (number of tokens) / 2^32.
  void guess_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const;

  // Holds a token whose text an earlier token has, and the first token with that text.
  struct Duplicate {
    TokenId id;
    TokenId first;
  };
  const std::vector<Duplicate>& duplicates() const { return duplicates_; }  // ordered by id

 private:
  TextTable table_;
  std::vector<Duplicate> duplicates_;
};

// Indexes some tokens of a vocabulary.
class TokenIndex {
  auto make_text_lookup() const {
    return [this](std::uint32_t id) { return vocabulary_.text(id); };
  }

 public:
  // Starts without tokens. Requires: the vocabulary outlives this.
  explicit TokenIndex(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  // Indexes all tokens except hidden ones. Uses the table that the vocabulary carries, if it has one. `hidden` is by
  // id; empty: no token is hidden.
  TokenIndex(const Vocabulary& vocabulary, std::vector<bool> hidden);

  // Requires: the index started empty.
  void add(TokenId id) {
    own_.insert(vocabulary_.text(static_cast<std::size_t>(id)), static_cast<std::uint32_t>(id), make_text_lookup());
  }

  // Returns the first token with that text.
  std::optional<TokenId> find(std::string_view text) const {
    if (texts_) {
      const auto found = texts_->find(vocabulary_, text);
      if (!found || is_shown(*found)) return found;
    }
    const auto found = own_.find(text, make_text_lookup());
    return found ? std::optional(static_cast<TokenId>(*found)) : std::nullopt;
  }
  // Finds many texts; -1 if missing.
  void find_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const;
  // Returns how many of the texts are certainly not tokens. The others are tokens almost certainly: see
  // TokenTexts::guess_many().
  std::size_t count_missing(std::span<const std::string_view> texts) const;

  bool is_shown(TokenId id) const { return hidden_.empty() || !hidden_[static_cast<std::size_t>(id)]; }
  // Returns true when find() returns this token for its text.
  bool is_found(TokenId id) const {
    if (texts_ && !passed_[static_cast<std::size_t>(id)]) return true;
    return find(vocabulary_.text(static_cast<std::size_t>(id))) == id;
  }

 private:
  const Vocabulary& vocabulary_;
  std::shared_ptr<const TokenTexts> texts_;  // null: all tokens are in `own_`
  std::vector<bool> hidden_;
  std::vector<bool> passed_;  // hidden tokens and duplicates: find() returns them only from `own_`
  TextTable own_;             // tokens that were added, or have the text of a hidden one
};

// Finds which of many texts are prefixes of another text, byte by byte.
class PrefixTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = UINT32_MAX;

  PrefixTrie();

  static constexpr std::size_t kLongest = 1024;  // bytes of a text, which bounds the steps at any place

  // Adds a text with its value. A text that is already there keeps its value. Throws unsupported for a text of more
  // than kLongest bytes, and if all texts together have more than 16 million bytes, where a prefix that several texts
  // share counts once. Requires: value >= 0.
  void add(std::string_view text, std::int32_t value);

  // Returns the child node for one byte, or kNone.
  Node step(Node node, char byte) const {
    if (node == kRoot) return first_[static_cast<unsigned char>(byte)];
    const std::uint64_t key = make_key(node, byte);
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot >> kNodeBits == key) return static_cast<Node>(slot & kNodeMask);
      if (slot == 0) return kNone;
    }
  }
  Node walk(Node node, std::string_view text) const {
    for (std::size_t i = 0; i < text.size() && node != kNone; ++i) node = step(node, text[i]);
    return node;
  }
  // Returns the value of the text that ends there, or -1.
  std::int32_t value(Node node) const { return values_[node]; }

  // Calls visit(length, value) for each text that is a prefix of `text`, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit&& visit, Node from = kRoot) const {
    Node node = from;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == kNone) return;
      if (const std::int32_t found = values_[node]; found >= 0) visit(i + 1, found);
    }
  }

  // Describes the longest added text that is a prefix of another text.
  struct Match {
    std::size_t length = 0;
    std::int32_t value = -1;  // none
  };
  Match find_longest(std::string_view text, Node from = kRoot) const {
    Match match;
    for_each_prefix(
        text,
        [&](std::size_t length, std::int32_t value) {
          match = {length, value};
        },
        from);
    return match;
  }

 private:
  static constexpr unsigned kNodeBits = 24;
  static constexpr std::uint64_t kNodeMask = (1U << kNodeBits) - 1;

  static std::uint64_t make_key(Node node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  std::size_t hash(std::uint64_t key) const {
    key = (key ^ seed_) * 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(key ^ key >> 29);
  }
  Node add_child(Node node, char byte);
  void grow();

  std::uint64_t seed_ = get_hash_seed();
  std::array<Node, 256> first_{};
  std::vector<std::uint64_t> slots_;  // a hash table of keys and child nodes, with open addressing, at most half full
  std::size_t mask_ = 0;
  std::size_t taken_ = 0;
  std::vector<std::int32_t> values_;
};

}  // namespace poise
