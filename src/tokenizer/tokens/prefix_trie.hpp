// PrefixTrie: finds which of many texts are prefixes of another text, byte by byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bytes/text_table.hpp"

namespace poise {

class PrefixTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = UINT32_MAX;

  PrefixTrie();

  static constexpr std::size_t kLongest = 1024;  // bytes of a text, which bounds the steps at any place

  // Of equal texts the first counts. Throws unsupported for a longer text, and above 16 million bytes, not counting
  // shared prefixes. Requires: value >= 0.
  void add(std::string_view text, std::int32_t value);

  // The child node for one byte, or kNone.
  Node step(Node node, char byte) const {
    if (node == kRoot) return first_[static_cast<unsigned char>(byte)];
    const std::uint64_t key = key_of(node, byte);
    for (std::size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot >> kNodeBits == key) return static_cast<Node>(slot & kNodeMask);
      if (slot == 0) return kNone;
    }
  }
  Node walk(Node node, std::string_view text) const {
    for (std::size_t i = 0; i < text.size() && node != kNone; ++i) node = step(node, text[i]);
    return node;
  }
  // The value of the text that ends there, or -1.
  std::int32_t value(Node node) const { return values_[node]; }

  // Calls visit(length, value) for each text that is a prefix of `text`, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit&& visit, Node from = kRoot) const {
    Node node = from;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == kNone) return;
      if (const std::int32_t found = values_[node]; found >= 0) visit(i + 1, found);
    }
  }

  // The longest text that is a prefix of `text`.
  struct Match {
    std::size_t length = 0;
    std::int32_t value = -1;  // none
  };
  Match longest(std::string_view text, Node from = kRoot) const {
    Match match;
    for_each_prefix(
        text,
        [&](std::size_t length, std::int32_t value) {
          match = {length, value};
        },
        from);
    return match;
  }

 private:
  static constexpr unsigned kNodeBits = 24;
  static constexpr std::uint64_t kNodeMask = (1U << kNodeBits) - 1;

  static std::uint64_t key_of(Node node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  std::size_t hash(std::uint64_t key) const {
    key = (key ^ seed_) * 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(key ^ key >> 29);
  }
  Node child(Node node, char byte);
  void grow();

  std::uint64_t seed_ = hash_seed();
  std::array<Node, 256> first_{};
  std::vector<std::uint64_t> slots_;  // key and child; open addressing, at most half full
  std::size_t mask_ = 0;
  std::size_t taken_ = 0;
  std::vector<std::int32_t> values_;
};

}  // namespace poise
