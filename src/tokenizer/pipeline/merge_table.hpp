// MergeTable: which two tokens merge, how early, and into what.
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
    std::uint32_t rank = UINT32_MAX;  // the lowest goes first; UINT32_MAX: they do not merge
    TokenId merged = -1;
  };

  // Makes room for so many.
  void reserve(std::size_t merges);

  // A pair that is there already keeps its place and gets the new rank.
  void set(TokenId left, TokenId right, Merge merge);

  // Asks for the memory that set() or find() will look at.
  void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&slots_[hash(key_of(left, right)) & mask_], 1); }

  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.merge;
      if (slot.key == kFree) return {};
    }
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };

  static std::uint64_t key_of(TokenId left, TokenId right) { return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right); }
  std::size_t hash(std::uint64_t key) const {
    key = (key ^ seed_) * 0x9E3779B97F4A7C15U;
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93U;
    return static_cast<std::size_t>(key ^ key >> 32);
  }

  std::uint64_t seed_ = hash_seed();
  std::vector<Slot, HugePages<Slot>> slots_ = decltype(slots_)(16);
  std::size_t mask_ = 15;
  std::size_t size_ = 0;
};

}  // namespace poise
