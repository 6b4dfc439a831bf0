#include "tokenizer/pipeline/merge_table.hpp"

#include <algorithm>
#include <utility>

namespace poise {

void MergeTable::grow() {
  const auto before = std::exchange(slots_, decltype(slots_)(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.key == kFree) continue;
    std::size_t at = hash(slot.key) & mask_;
    while (slots_[at].key != kFree) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  if (size_ == kMost) {
    std::ranges::fill(slots_, Slot());
    size_ = 0;
  }
  if (2 * ++size_ > slots_.size()) grow();
  const std::uint64_t key = key_of(left, right);
  std::size_t at = hash(key) & mask_;
  while (slots_[at].key != kFree) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

}  // namespace poise
