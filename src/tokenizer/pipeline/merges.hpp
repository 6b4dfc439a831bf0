// Merges: which two tokens merge, how early, and into what.
//
// They are found by texts on demand: for two tokens, by the token with the concatenated text. Before the first text is
// encoded, lists of half a million merges need only a note, for each token, of the merges that make it.
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
  // Takes the vocabulary's list; if the model has "merge_by_score", two tokens merge when their concatenation is a
  // token, the highest score first. Throws invalid_file for a merge that makes no token, except with
  // "skip_unknown_merges", which GGUF files need. `prefix`: of tokens inside a word. Requires: vocabulary and ids
  // outlive this.
  Merges(const Fields& model, const Vocabulary& vocabulary, const TokenIndex& ids, std::string_view prefix);

  // `buffer`: scratch space. Requires: tokens that `ids` finds.
  MergeTable::Merge find(TokenId left, TokenId right, std::string& buffer) const;

  // True when some merge uses a byte token like <0x0A>.
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
  std::size_t longest_ = 0;  // token, in bytes
  bool by_score_;
  bool has_bytes_ = false;
  // By token: with scores, its rank; else the rank of the last merge that makes it. By rank: the previous merge that
  // makes the same token.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> ranks_;
  std::vector<std::uint32_t, HugePages<std::uint32_t>> before_;
};

}  // namespace poise
