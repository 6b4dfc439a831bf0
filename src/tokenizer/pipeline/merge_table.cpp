#include "tokenizer/pipeline/merge_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace poise {

void MergeTable::reserve(std::size_t merges) {
  const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(merges + merges / 2, 16));
  if (wanted <= slots_.size()) return;
  const auto before = std::exchange(slots_, decltype(slots_)(wanted));
  mask_ = wanted - 1;
  for (const Slot& slot : before) {
    if (slot.key == kFree) continue;
    std::size_t at = hash(slot.key) & mask_;
    while (slots_[at].key != kFree) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  if (size_ + size_ / 2 + 2 > slots_.size()) reserve(2 * size_ + 16);
  const std::uint64_t key = key_of(left, right);
  std::size_t at = hash(key) & mask_;
  while (slots_[at].key != kFree && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == kFree) ++size_;
  slots_[at] = {key, merge};
}

}  // namespace poise
