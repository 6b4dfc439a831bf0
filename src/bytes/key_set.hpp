// The keys of one map that have been read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "bytes/text_table.hpp"

namespace poise {

// Small sets are searched and allocate nothing; large ones build a table.
class KeySet {
 public:
  static constexpr std::size_t kFew = 8;

  // False when the set has it already. Requires: the text outlives this.
  bool insert(std::string_view key) {
    const std::uint64_t trait = trait_of(key);
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
  // One bit of 64: keys with different bits differ.
  static std::uint64_t trait_of(std::string_view key) {
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
      if (!more_) begin_table();
      if (!put(key, size_)) return false;
      more_->push_back(key);
    }
    ++size_;
    return true;
  }

  void begin_table() {
    more_.emplace();
    for (std::size_t i = 0; i < kFew; ++i) put(few_[i], i);
  }

  bool put(std::string_view key, std::size_t position) {
    return !table_.insert(key, static_cast<std::uint32_t>(position),
                          [this](std::uint32_t at) { return at < kFew ? few_[at] : (*more_)[at - kFew]; });
  }

  std::size_t size_ = 0;
  std::uint64_t traits_ = 0;  // of the few keys
  std::array<std::string_view, kFew> few_;
  std::optional<std::deque<std::string_view>> more_;
  TextTable table_;  // of all keys, once there are more than a few
};

}  // namespace poise
