// What the values of one text may cost in memory: some bytes of text can ask for many times their number.
#pragma once

#include <cstdint>

#include <poise/value.hpp>

#include "bytes/limits.hpp"

namespace poise {

class ValueBudget {
 public:
  explicit ValueBudget(std::uint64_t text_bytes) : left_(max_value_bytes(text_bytes)) {}

  // False when there is nothing left for one more. Lists have room to grow, and the keys of a map are looked up while it is read.
  bool take_item() { return take(sizeof(Value) + sizeof(Value) / 2); }
  bool take_entry() { return take(2 * sizeof(Attributes::Entry) + 64); }

 private:
  bool take(std::uint64_t bytes) {
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
  }

  std::uint64_t left_;
};

}  // namespace poise
