// Some tokens of a vocabulary, found by their text.
#pragma once

#include <optional>
#include <string_view>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/text_table.hpp"

namespace poise {

class TokenIndex {
 public:
  // Requires: the vocabulary outlives this.
  explicit TokenIndex(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void reserve(std::size_t tokens) { table_.reserve(tokens); }

  // Of tokens with one text the first is found.
  void add(TokenId id) {
    table_.insert(text_at(static_cast<std::uint32_t>(id)), static_cast<std::uint32_t>(id), [this](std::uint32_t at) { return text_at(at); });
  }

  std::optional<TokenId> find(std::string_view text) const {
    const auto found = table_.find(text, [this](std::uint32_t at) { return text_at(at); });
    return found ? std::optional(static_cast<TokenId>(*found)) : std::nullopt;
  }

 private:
  std::string_view text_at(std::uint32_t id) const { return vocabulary_.text(id); }

  const Vocabulary& vocabulary_;
  TextTable table_;
};

}  // namespace poise
