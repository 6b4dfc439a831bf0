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

  std::size_t size() const { return size_; }

  void clear() {
    if (more_) {
      more_.reset();
      table_.clear();
    }
    size_ = 0;
  }

 private:
  void begin_table() {
    more_.emplace();
    for (std::size_t i = 0; i < kFew; ++i) put(few_[i], i);
  }

  bool put(std::string_view key, std::size_t position) {
    return !table_.insert(key, static_cast<std::uint32_t>(position),
                          [this](std::uint32_t at) { return at < kFew ? few_[at] : (*more_)[at - kFew]; });
  }

  std::size_t size_ = 0;
  std::array<std::string_view, kFew> few_;
  std::optional<std::deque<std::string_view>> more_;
  TextTable table_;  // of all keys, once there are more than a few
};

}  // namespace poise
