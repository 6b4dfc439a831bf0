// The keys of one map, as they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string_view>

#include "bytes/text_table.hpp"

namespace poise {

// Most maps are small: only those that are not pay for a table.
class KeySet {
 public:
  static constexpr std::size_t kFew = 8;

  // False when it is in already. Requires: the text outlives this.
  bool insert(std::string_view key) {
    if (keys_.size() < kFew) {
      if (std::ranges::find(keys_, key) != keys_.end()) return false;
    } else {
      if (keys_.size() == kFew) {
        for (std::size_t i = 0; i < kFew; ++i) put(keys_[i], i);
      }
      if (!put(key, keys_.size())) return false;
    }
    keys_.push_back(key);
    return true;
  }

  std::size_t size() const { return keys_.size(); }

  void clear() {
    keys_.clear();
    table_.clear();
  }

 private:
  bool put(std::string_view key, std::size_t position) {
    return !table_.insert(key, static_cast<std::uint32_t>(position), [this](std::uint32_t at) { return keys_[at]; });
  }

  std::deque<std::string_view> keys_;
  TextTable table_;  // of all of them, once there are more than a few
};

}  // namespace poise
