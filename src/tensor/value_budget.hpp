// What the values of one text may cost in memory: some bytes of text can ask for many times their number.
#pragma once

#include <cstdint>

#include <poise/value.hpp>

#include "bytes/key_set.hpp"
#include "bytes/limits.hpp"

namespace poise {

class ValueBudget {
 public:
  explicit ValueBudget(std::uint64_t text_bytes) : left_(max_value_bytes(text_bytes)) {}

  // False when there is nothing left for one more value: it lies in a list or a map that has room to grow.
  bool take_value() { return take(kValueBytes); }
  // The same for a key that comes to those: a few of them cost nothing.
  bool take_key(const KeySet& keys) { return keys.are_few() || take(64); }
  // The same for text that does not stay where it was read.
  bool take_text(std::size_t bytes) { return take(64 + bytes); }

  // Whether so many values could be taken.
  bool affords(std::uint64_t values) const { return values <= left_ / kValueBytes; }

 private:
  static constexpr std::uint64_t kValueBytes = sizeof(Attributes::Entry) + 16;

  bool take(std::uint64_t bytes) {
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
  }

  std::uint64_t left_;
};

}  // namespace poise
