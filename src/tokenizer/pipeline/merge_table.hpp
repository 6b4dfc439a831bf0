// MergeTable: a cache of pairs of tokens: how early they merge, and into what, or that they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/tokenizer.hpp>

#include "bytes/huge_pages.hpp"
#include "bytes/text_table.hpp"

namespace poise {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;  // lowest first; UINT32_MAX: they do not merge
    TokenId merged = -1;
  };

  // Drops all pairs when there are too many. Requires: the pair is unknown.
  void add(TokenId left, TokenId right, Merge merge);

  // Prefetches the memory for find().
  void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&slots_[hash(key_of(left, right)) & mask_]); }

  // Null if the pair is unknown. Valid until the next add().
  const Merge* find(TokenId left, TokenId right) const {
    const std::uint64_t key = key_of(left, right);
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

  static std::uint64_t key_of(TokenId left, TokenId right) {
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

  std::uint64_t seed_ = hash_seed();
  std::vector<Slot, HugePages<Slot>> slots_ = decltype(slots_)(kFirst);
  std::size_t mask_ = kFirst - 1;
  std::size_t size_ = 0;
};

}  // namespace poise
