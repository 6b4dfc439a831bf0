// Positions in a list of texts, found by the text: an index that copies no text; 10 to 20 bytes for each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bytes/huge_pages.hpp"

namespace poise {

// Random for each process, so that nobody can craft a file whose keys collide.
std::uint64_t hash_seed();

// Open addressing, hashed with that seed.
// `text_at(position)` returns the text inserted with a position.
class TextTable {
 public:
  // Reserves room for that many texts.
  void reserve(std::size_t texts);
  void clear();

  template <typename TextAt>
  std::optional<std::uint32_t> find(std::string_view text, const TextAt& text_at) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[place(hash(text), text, text_at)];
    return slot.is_free() ? std::nullopt : std::optional(slot.position());
  }

  // As find() for each of many texts, with prefetching: the misses of several texts overlap. kNone: not found.
  static constexpr std::uint32_t kNone = UINT32_MAX;
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
        const Slot& slot = slots_[place(tags[i], texts[i], text_at)];
        positions[i] = slot.is_free() ? kNone : slot.position();
      }
    }
  }

  // Inserts the positions from 0 to count, each for its text; calls on_duplicate(position, first) where the text is
  // there already.
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
        Slot& slot = slots_[place(tags[i], text_at(begin + i), text_at)];
        if (!slot.is_free()) {
          on_duplicate(begin + i, slot.position());
          continue;
        }
        slot = Slot(tags[i], begin + i);
        ++size_;
      }
    }
  }

  // Inserts `position` for `text`, or returns the position that the text has already. Requires: position < UINT32_MAX.
  template <typename TextAt>
  std::optional<std::uint32_t> insert(std::string_view text, std::uint32_t position, const TextAt& text_at) {
    return insert(fetch(text), text, position, text_at);
  }

  // The same in two steps: fetch() makes room and fetches memory, which takes a while; insert() uses what it returns.
  std::uint32_t fetch(std::string_view text) {
    if (size_ + 1 + (size_ + 1) / 4 > slots_.size()) reserve(size_ + 1);
    const std::uint32_t tag = hash(text);
    __builtin_prefetch(&slots_[tag & (slots_.size() - 1)], 1);
    return tag;
  }
  template <typename TextAt>
  std::optional<std::uint32_t> insert(std::uint32_t tag, std::string_view text, std::uint32_t position,
                                      const TextAt& text_at) {
    Slot& slot = slots_[place(tag, text, text_at)];
    if (!slot.is_free()) return slot.position();
    slot = Slot(tag, position);
    ++size_;
    return std::nullopt;
  }

  // Replaces each position p by positions[p]. Requires: there is one for each.
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

  // The slot of the text, or the free slot for it.
  template <typename TextAt>
  std::size_t place(std::uint32_t tag, std::string_view text, const TextAt& text_at) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = tag & mask;
    while (!slots_[at].is_free() && !(slots_[at].tag() == tag && text_at(slots_[at].position()) == text))
      at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot, HugePages<Slot>> slots_;  // a power of two; at most four fifths are taken
  std::size_t size_ = 0;
};

}  // namespace poise
