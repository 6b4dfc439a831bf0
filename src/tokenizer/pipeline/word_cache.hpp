// WordCache: the tokens of recent pieces. Bounded in memory: new words replace old ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <xxhash.h>

#include <poise/tokenizer.hpp>

namespace poise {

class WordCache {
 public:
  static constexpr std::size_t kLongestWord = 128;

  // Empty if unknown.
  std::span<const TokenId> find(std::string_view word) {
    hash_ = XXH3_64bits(word.data(), word.size());
    if (slots_.empty()) return {};
    const Slot& slot = slots_[hash_ & (kSlots - 1)];
    if (slot.hash != hash_ || slot.bytes != word.size() ||
        std::memcmp(text_.data() + slot.text, word.data(), word.size()) != 0)
      return {};
    return {ids_.data() + slot.ids, slot.count};
  }

  // Stores the tokens of the last word that find() was called with. Requires: at most kLongestWord bytes and tokens.
  void keep(std::string_view word, std::span<const TokenId> tokens) {
    if (tokens.empty()) return;
    if (slots_.empty() || text_.size() + word.size() > kMaxText || ids_.size() + tokens.size() > kMaxText) {
      slots_.assign(kSlots, {});
      text_.clear();
      ids_.clear();
    }
    slots_[hash_ & (kSlots - 1)] = {hash_, static_cast<std::uint32_t>(text_.size()),
                                    static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                                    static_cast<std::uint16_t>(tokens.size())};
    text_.insert(text_.end(), word.begin(), word.end());
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t kSlots = 1 << 15;
  static constexpr std::size_t kMaxText = 2 << 20;

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text = 0;
    std::uint32_t ids = 0;
    std::uint16_t bytes = 0;
    std::uint16_t count = 0;
  };
  std::vector<Slot> slots_;
  std::vector<char> text_;
  std::vector<TokenId> ids_;
  std::uint64_t hash_ = 0;
};

}  // namespace poise
