// Limits the memory that the values of one text (JSON, CBOR, ...) take, because it can be many times the text's size.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/value.hpp>

#include "bytes/text_table.hpp"

namespace poise {

// These limit nesting. docs/limits.md lists them for users.
inline constexpr std::size_t kMaxNesting = 64;           // JSON, CBOR, MessagePack, pickles, arrays of GGUF
inline constexpr std::size_t kMaxManifestNesting2 = 32;  // deterministic CBOR: levels, including the root

// Returns how many bytes the values of a text, such as JSON or a pickle, may take in memory.
inline constexpr std::uint64_t compute_value_limit(std::uint64_t text_bytes) {
  return (std::uint64_t{80} << 20) + 2 * text_bytes;
}

class ValueBudget {
 public:
  explicit ValueBudget(std::uint64_t text_bytes) : left_(compute_value_limit(text_bytes)) {}

  // Returns a budget that `values` values use up, if no key and no text is charged.
  static ValueBudget make_for_values(std::uint64_t values) {
    ValueBudget budget(0);
    budget.left_ = values * kValueBytes;
    return budget;
  }

  // Returns false when the budget has no room for one more value, including the growth of the list or map that holds
  // it.
  bool charge_value() { return charge(kValueBytes); }
  // Charges a key of a map that has `keys` keys already. The first few keys of a map cost nothing.
  bool charge_key(std::size_t keys) { return keys < KeySet::kFew || charge(kKeyBytes); }
  // Charges a text that is copied.
  bool charge_text(std::size_t bytes) { return charge(64 + bytes); }

 private:
  friend std::uint64_t measure_cost(const Value& value);

  static constexpr std::uint64_t kValueBytes = sizeof(Attributes::Entry) + 16;
  static constexpr std::uint64_t kKeyBytes = 64;

  bool charge(std::uint64_t bytes) {
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
  }

  std::uint64_t left_;
};

// Returns an upper bound on what reading this value from JSON charges to a budget.
std::uint64_t measure_cost(const Value& value);

}  // namespace poise
