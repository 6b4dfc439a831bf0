#include "runtime/ranks.hpp"

namespace poise {

HeadShare Ranks::find_heads(std::size_t heads, std::size_t kv_heads) const {
  const std::size_t sharing = heads / kv_heads;
  if (!splits_matrices() || count() <= kv_heads) {
    const IndexRange share = find_share(kv_heads);
    return {{share.first * sharing, share.last * sharing}, share};
  }
  // Each head of keys and values belongs to a group of ranks, which divide its query heads among them.
  const auto find_first_rank = [&](std::size_t head) { return head * count() / kv_heads; };
  std::size_t head = 0;
  while (find_first_rank(head + 1) <= rank()) ++head;
  const std::size_t members = find_first_rank(head + 1) - find_first_rank(head);
  const std::size_t member = rank() - find_first_rank(head);
  const std::size_t first = head * sharing;
  const IndexRange share = {first + sharing * member / members, first + sharing * (member + 1) / members};
  if (share.size() == 0) return {share, {head, head}, false};
  return {share, {head, head + 1}, share.first == first};
}

std::size_t Ranks::find_owner(std::size_t layer, std::size_t layers) const {
  std::size_t owner = 0;
  while (find_share(layers, owner).last <= layer) ++owner;
  return owner;
}

}  // namespace poise
