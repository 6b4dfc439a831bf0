// Finds the merges of byte pair encoding: listed ones, and those that follow from scores. Caches pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/function_ref.hpp"
#include "bytes/platform.hpp"
#include "bytes/text_table.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

// Caches how early pairs of tokens merge, and into which token, or that they do not merge.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;  // the lowest rank merges first; UINT32_MAX: the pair does not merge
    TokenId merged = -1;
  };

  // Adds a pair; drops all others first if there are too many. Requires: the pair is unknown.
  void add(TokenId left, TokenId right, Merge merge);

  // Hides the cache miss of a later find() of this pair.
  void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&slots_[hash(make_key(left, right)) & mask_]); }

  // Returns null if the pair is unknown. The result is valid until the next add().
  const Merge* find(TokenId left, TokenId right) const {
    const std::uint64_t key = make_key(left, right);
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return &slot.merge;
      if (slot.key == kFree) return nullptr;
    }
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };

  static std::uint64_t make_key(TokenId left, TokenId right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t hash(std::uint64_t key) const {
    key = (key ^ seed_) * 0x9E3779B97F4A7C15U;
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93U;
    return static_cast<std::size_t>(key ^ key >> 32);
  }

  void grow();

  static constexpr std::size_t kFirst = 4096;    // slots
  static constexpr std::size_t kMost = 1 << 19;  // pairs

  std::uint64_t seed_ = get_hash_seed();
  std::vector<Slot, HugePages<Slot>> slots_ = decltype(slots_)(kFirst);
  std::size_t mask_ = kFirst - 1;
  std::size_t size_ = 0;
};

inline constexpr TokenId kNoToken = -1;

// Finds which two tokens merge, how early, and into which token.
//
// It looks up the token with the concatenated text on demand. Thus a list of half a million merges needs no index of
// pairs: a record of the merges that make each token suffices.
class Merges {
 public:
  // Uses the vocabulary's list. But if the model has "merge_by_score", two tokens merge when their concatenation is a
  // token, the highest score first. Throws invalid_file for a merge of texts that are not tokens, or that makes no
  // token, except with "skip_unknown_merges", which GGUF files need. `prefix` is the prefix of tokens inside a word.
  // Requires: vocabulary and ids outlive this.
  Merges(const Fields& model, const Vocabulary& vocabulary, const TokenIndex& ids, std::string_view prefix);

  // Returns how two tokens merge. `buffer` is scratch space. Requires: `ids` finds both tokens.
  MergeTable::Merge find(TokenId left, TokenId right, std::string& buffer) const;

  // Returns true when some merge uses a byte token like <0x0A>.
  bool has_bytes() const { return has_bytes_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void read_list(const Fields& model);
  void rank_by_score();
  std::size_t find_first_unknown_merge() const;
  [[noreturn]] void refuse(const Fields& model, std::size_t rank) const;
  void add(std::uint32_t rank, TokenId merged);
  bool is_pair(std::uint32_t rank, std::string_view left, std::string_view right) const;
  TokenId find_merged_token(std::size_t rank, TokenId last) const;
  bool is_byte(std::string_view text) const;
  std::string_view text(TokenId id) const { return vocabulary_.text(static_cast<std::size_t>(id)); }

  const Vocabulary& vocabulary_;
  const TokenIndex& ids_;
  std::string prefix_;
  std::size_t longest_ = 0;  // bytes of the longest token
  bool by_score_;
  bool has_bytes_ = false;
  // ranks_[token] is the token's rank if merges follow from scores, or else the rank of the last merge that makes the
  // token. before_[rank] is the previous merge that makes the same token as the merge of this rank.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> ranks_;
  std::vector<std::uint32_t, HugePages<std::uint32_t>> before_;
};

// These functions find merges that follow from scores: two tokens merge if their concatenation is a token, the highest
// score first.

// These merges make no token of more bytes, because finding its parts takes quadratic time.
inline constexpr std::size_t kLongestMergedToken = 4096;

struct ScoreMerge {
  TokenId left;
  TokenId right;
  TokenId merged;
  std::uint32_t rank;  // equal for equal scores
};

// Returns the rank of each token: how many different better scores the tokens in `ids` have; UINT32_MAX for tokens that
// are not in `ids`, and for scores of NaN.
std::vector<std::uint32_t> compute_token_ranks(const Vocabulary& vocabulary, const TokenIndex& ids);

// Calls visit(merge) for all pairs of tokens that make a token, in the order of ranks. Only tokens in `ids` count.
void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids,
                          FunctionRef<void(const ScoreMerge&)> visit);

// Returns the pairs of for_each_score_merge() as left and right texts. Pairs of equal rank are sorted by the length of
// their left part, the longest first, because a list has no equal ranks.
std::vector<std::pair<std::string_view, std::string_view>> list_score_merges(const Vocabulary& vocabulary,
                                                                             const TokenIndex& ids);

}  // namespace poise
