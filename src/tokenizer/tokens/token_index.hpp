// An index of some tokens of a vocabulary by their text.
#pragma once

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

// All tokens of a vocabulary by their text. It copies no text, so that copies of the vocabulary share it.
class TokenTexts {
 public:
  explicit TokenTexts(const Vocabulary& vocabulary);

  // The index of the vocabulary. Null if there is none, or tokens were added since.
  static const std::shared_ptr<const TokenTexts>& of(const Vocabulary& vocabulary) { return vocabulary.index_.texts; }
  static void give(Vocabulary& vocabulary, std::shared_ptr<const TokenTexts> texts) {
    vocabulary.index_.texts = std::move(texts);
  }

  // The first token with that text. Requires: the vocabulary, or a copy.
  std::optional<TokenId> find(const Vocabulary& vocabulary, std::string_view text) const;
  // The same for many texts; -1 if missing.
  void find_many(const Vocabulary& vocabulary, std::span<const std::string_view> texts, std::span<TokenId> ids) const;

  // Ids of tokens whose texts have the same hashes, in half the time. One in a billion is wrong.
  void guess_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const;

  // A token whose text an earlier one has, and the first such token.
  struct Duplicate {
    TokenId id;
    TokenId first;
  };
  const std::vector<Duplicate>& duplicates() const { return duplicates_; }  // by id

 private:
  TextTable table_;
  std::vector<Duplicate> duplicates_;
};

class TokenIndex {
  auto text_at() const {
    return [this](std::uint32_t id) { return vocabulary_.text(id); };
  }

 public:
  // Starts empty. Requires: the vocabulary outlives this.
  explicit TokenIndex(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  // All tokens except hidden ones. Uses the table that the vocabulary carries, if it has one. `hidden`: by id; empty:
  // none.
  TokenIndex(const Vocabulary& vocabulary, std::vector<bool> hidden);

  // Requires: the index started empty.
  void add(TokenId id) {
    own_.insert(vocabulary_.text(static_cast<std::size_t>(id)), static_cast<std::uint32_t>(id), text_at());
  }

  // The first token with that text.
  std::optional<TokenId> find(std::string_view text) const {
    if (texts_) {
      const auto found = texts_->find(vocabulary_, text);
      if (!found || is_shown(*found)) return found;
    }
    const auto found = own_.find(text, text_at());
    return found ? std::optional(static_cast<TokenId>(*found)) : std::nullopt;
  }
  // The same for many texts; -1 if missing.
  void find_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const;
  // How many of the texts are certainly not tokens. The others are tokens almost certainly: see
  // TokenTexts::guess_many().
  std::size_t count_missing(std::span<const std::string_view> texts) const;

  bool is_shown(TokenId id) const { return hidden_.empty() || !hidden_[static_cast<std::size_t>(id)]; }
  // True when that token is found by its text.
  bool finds(TokenId id) const {
    if (texts_ && !passed_[static_cast<std::size_t>(id)]) return true;
    return find(vocabulary_.text(static_cast<std::size_t>(id))) == id;
  }

 private:
  const Vocabulary& vocabulary_;
  std::shared_ptr<const TokenTexts> texts_;  // null: all are in `own_`
  std::vector<bool> hidden_;
  std::vector<bool> passed_;  // hidden, or a duplicate
  TextTable own_;             // tokens that were added, or have the text of a hidden one
};

}  // namespace poise
