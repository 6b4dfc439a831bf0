// A TextTable finds the position of a text in a list. It copies no text, and takes 10 to 20 bytes for each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bytes/platform.hpp"

namespace poise {

// Returns a number that is random for each process, so that nobody can craft a file whose keys collide.
std::uint64_t get_hash_seed();

// Uses open addressing, and hashes with get_hash_seed(). `text_at(position)` returns the text that was inserted with
// this position.
class TextTable {
 public:
  void reserve(std::size_t texts);
  void clear();

  template <typename TextAt>
  std::optional<std::uint32_t> find(std::string_view text, const TextAt& text_at) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[find_slot(hash(text), text, text_at)];
    return slot.is_free() ? std::nullopt : std::optional(slot.position());
  }

  static constexpr std::uint32_t kNone = UINT32_MAX;
  // Sets positions[i] to the position of texts[i], or to kNone if it is not there. Prefetches, so that the cache misses
  // of several texts overlap.
  template <typename TextAt>
  void find_many(std::span<const std::string_view> texts, std::span<std::uint32_t> positions,
                 const TextAt& text_at) const {
    if (slots_.empty()) {
      std::ranges::fill(positions, kNone);
      return;
    }
    std::array<std::uint32_t, kAtOnce> tags;
    for (; !texts.empty(); texts = texts.subspan(std::min(kAtOnce, texts.size())),
                           positions = positions.subspan(std::min(kAtOnce, positions.size()))) {
      const std::size_t count = std::min(kAtOnce, texts.size());
      for (std::size_t i = 0; i < count; ++i) {
        tags[i] = hash(texts[i]);
        __builtin_prefetch(&slots_[tags[i] & (slots_.size() - 1)]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Slot& slot = slots_[tags[i] & (slots_.size() - 1)];
        if (!slot.is_free() && slot.tag() == tags[i]) __builtin_prefetch(text_at(slot.position()).data());
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Slot& slot = slots_[find_slot(tags[i], texts[i], text_at)];
        positions[i] = slot.is_free() ? kNone : slot.position();
      }
    }
  }

  // Inserts the texts of the positions below `count`. If a text is there already, calls on_duplicate(position, first),
  // where `first` is the position that it has.
  template <typename TextAt, typename OnDuplicate>
  void insert_all(std::uint32_t count, const TextAt& text_at, OnDuplicate&& on_duplicate) {
    reserve(size_ + count);
    std::array<std::uint32_t, kAtOnce> tags;
    for (std::uint32_t begin = 0; begin < count; begin += kAtOnce) {
      const auto block = static_cast<std::uint32_t>(std::min<std::size_t>(kAtOnce, count - begin));
      for (std::uint32_t i = 0; i < block; ++i) {
        tags[i] = hash(text_at(begin + i));
        __builtin_prefetch(&slots_[tags[i] & (slots_.size() - 1)], 1);
      }
      for (std::uint32_t i = 0; i < block; ++i) {
        Slot& slot = slots_[find_slot(tags[i], text_at(begin + i), text_at)];
        if (!slot.is_free()) {
          on_duplicate(begin + i, slot.position());
          continue;
        }
        slot = Slot(tags[i], begin + i);
        ++size_;
      }
    }
  }

  // Inserts `position` for `text`, or returns the position that the text already has. Requires: position < UINT32_MAX.
  template <typename TextAt>
  std::optional<std::uint32_t> insert(std::string_view text, std::uint32_t position, const TextAt& text_at) {
    return insert(prefetch(text), text, position, text_at);
  }

  // These functions split insert() in two steps, so that the caller can work while the memory arrives: prefetch() makes
  // room and returns the tag for insert().
  std::uint32_t prefetch(std::string_view text) {
    if (size_ + 1 + (size_ + 1) / 4 > slots_.size()) reserve(size_ + 1);
    const std::uint32_t tag = hash(text);
    __builtin_prefetch(&slots_[tag & (slots_.size() - 1)], 1);
    return tag;
  }
  template <typename TextAt>
  std::optional<std::uint32_t> insert(std::uint32_t tag, std::string_view text, std::uint32_t position,
                                      const TextAt& text_at) {
    Slot& slot = slots_[find_slot(tag, text, text_at)];
    if (!slot.is_free()) return slot.position();
    slot = Slot(tag, position);
    ++size_;
    return std::nullopt;
  }

  // Replaces each position p with positions[p]. Requires: p < positions.size().
  void renumber(std::span<const std::uint32_t> positions) {
    for (Slot& slot : slots_) {
      if (!slot.is_free()) slot = Slot(slot.tag(), positions[slot.position()]);
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 32;

  class Slot {
   public:
    Slot() = default;
    Slot(std::uint32_t tag, std::uint32_t position) : tag_(tag), number_(position + 1) {}
    bool is_free() const { return number_ == 0; }
    std::uint32_t tag() const { return tag_; }
    std::uint32_t position() const { return number_ - 1; }

   private:
    std::uint32_t tag_ = 0;  // the text's hash
    std::uint32_t number_ = 0;
  };

  static std::uint32_t hash(std::string_view text);

  // Returns the index of the text's slot, or of the free slot for it.
  template <typename TextAt>
  std::size_t find_slot(std::uint32_t tag, std::string_view text, const TextAt& text_at) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = tag & mask;
    while (!slots_[at].is_free() && !(slots_[at].tag() == tag && text_at(slots_[at].position()) == text))
      at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot, HugePages<Slot>> slots_;  // the size is 0 or a power of two; at most about four fifths are taken
  std::size_t size_ = 0;
};

// Holds the keys of a map that a reader has seen, to find repeated ones. Searches small sets linearly and allocates
// nothing for them; builds a table for large ones.
class KeySet {
 public:
  static constexpr std::size_t kFew = 8;

  // Returns false if the set already has the key. Requires: the key outlives this.
  bool insert(std::string_view key) {
    const std::uint64_t trait = compute_trait(key);
    if (size_ >= kFew || (traits_ & trait) != 0) return search_and_insert(key);
    traits_ |= trait;
    few_[size_++] = key;
    return true;
  }

  std::size_t size() const { return size_; }

  void clear() {
    if (more_) {
      more_.reset();
      table_.clear();
    }
    size_ = 0;
    traits_ = 0;
  }

 private:
  // Returns a mask with one bit of 64. Keys with different bits differ.
  static std::uint64_t compute_trait(std::string_view key) {
    if (key.empty()) return 1;
    const unsigned sum = 5U * static_cast<unsigned char>(key.front()) + static_cast<unsigned char>(key.back());
    return std::uint64_t{1} << ((sum + key.size()) % 64);
  }

  [[gnu::noinline]] bool search_and_insert(std::string_view key) {
    if (size_ < kFew) {
      const auto end = few_.begin() + static_cast<std::ptrdiff_t>(size_);
      if (std::find(few_.begin(), end, key) != end) return false;
      *end = key;
    } else {
      if (!more_) build_table();
      if (!insert_in_table(key, size_)) return false;
      more_->push_back(key);
    }
    ++size_;
    return true;
  }

  void build_table() {
    more_.emplace();
    for (std::size_t i = 0; i < kFew; ++i) insert_in_table(few_[i], i);
  }

  bool insert_in_table(std::string_view key, std::size_t position) {
    return !table_.insert(key, static_cast<std::uint32_t>(position),
                          [this](std::uint32_t at) { return at < kFew ? few_[at] : (*more_)[at - kFew]; });
  }

  std::size_t size_ = 0;
  std::uint64_t traits_ = 0;  // one bit for each trait of the keys in few_
  std::array<std::string_view, kFew> few_;
  std::optional<std::deque<std::string_view>> more_;
  TextTable table_;  // all keys, once there are more than a few
};

// Joins constant tables into one: returns all rows, in order.
template <typename Row, std::size_t... kSizes>
constexpr auto join_tables(const std::array<Row, kSizes>&... rows) {
  std::array<Row, (kSizes + ...)> all = {};
  std::size_t next = 0;
  const auto add = [&](const auto& table) {
    for (const Row& row : table) all[next++] = row;
  };
  (add(rows), ...);
  return all;
}

}  // namespace poise
