#include "tokenizer/tokens/prefix_trie.hpp"

#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

PrefixTrie::PrefixTrie() : slots_(16), mask_(15), values_(1, -1) { first_.fill(kNone); }

void PrefixTrie::grow() {
  const auto before = std::exchange(slots_, std::vector<std::uint64_t>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const std::uint64_t slot : before) {
    if (slot == 0) continue;
    std::size_t at = hash(slot >> kNodeBits) & mask_;
    while (slots_[at] != 0) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

PrefixTrie::Node PrefixTrie::child(Node node, char byte) {
  if (const Node found = step(node, byte); found != kNone) return found;
  if (values_.size() > kNodeMask)
    throw Error(ErrorKind::unsupported,
                "the texts of the vocabulary have more than 16 million bytes to tell them apart");
  const auto fresh = static_cast<Node>(values_.size());
  values_.push_back(-1);
  if (node == kRoot) return first_[static_cast<unsigned char>(byte)] = fresh;
  if (2 * ++taken_ > slots_.size()) grow();
  const std::uint64_t key = key_of(node, byte);
  std::size_t at = hash(key) & mask_;
  while (slots_[at] != 0) at = (at + 1) & mask_;
  slots_[at] = key << kNodeBits | fresh;
  return fresh;
}

void PrefixTrie::add(std::string_view text, std::int32_t value) {
  if (text.size() > kLongest)
    throw Error(ErrorKind::unsupported,
                fmt::format("tokenizer: token {} has {} bytes, more than {}", value, text.size(), kLongest));
  Node node = kRoot;
  for (const char byte : text) node = child(node, byte);
  if (values_[node] < 0) values_[node] = value;
}

}  // namespace poise
