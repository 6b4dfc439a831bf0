// Merges: which two tokens merge, how early, and into what.
//
// They are found by their texts when a text needs them: of two tokens, by the token that has both texts. So nothing has
// to be made of lists of half a million merges before the first text is encoded but a note, for each token, of the
// merges that make it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/huge_pages.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/pipeline/merge_table.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

inline constexpr TokenId kNoToken = -1;

class Merges {
 public:
  // Those of the vocabulary's list; by the tokens' scores where the model says "merge_by_score": then two tokens merge
  // whose texts together are a token's, the one of the highest score first. Throws invalid_file for a merge of what is
  // no token, but for "skip_unknown_merges", which GGUF files need. `prefix` is that of tokens that go on. Requires:
  // vocabulary and ids outlive this.
  Merges(const Fields& model, const Vocabulary& vocabulary, const TokenIndex& ids, std::string_view prefix);

  // `buffer`: room to work in. Requires: tokens that `ids` finds.
  MergeTable::Merge find(TokenId left, TokenId right, std::string& buffer) const;

  // Does any merge have a token of a byte, like <0x0A>?
  bool has_bytes() const { return has_bytes_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void read_list(const Fields& model);
  void rank_by_score();
  std::size_t first_of_no_tokens() const;
  [[noreturn]] void refuse(const Fields& model, std::size_t rank) const;
  void add(std::uint32_t rank, TokenId merged);
  bool is_pair(std::uint32_t rank, std::string_view left, std::string_view right) const;
  TokenId merged_token(std::size_t rank, TokenId last) const;
  bool is_byte(std::string_view text) const;
  std::string_view text(TokenId id) const { return vocabulary_.text(static_cast<std::size_t>(id)); }

  const Vocabulary& vocabulary_;
  const TokenIndex& ids_;
  std::string prefix_;
  std::size_t longest_ = 0;  // token
  bool by_score_;
  bool has_bytes_ = false;
  // By token: its rank, with scores; else the rank of the last merge that makes it, and by rank the one before that
  // makes the same token.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> ranks_;
  std::vector<std::uint32_t, HugePages<std::uint32_t>> before_;
};

}  // namespace poise
