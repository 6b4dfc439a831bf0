// value_rules: what the values in a part have to be, as far as its type and its tensor's layout tell.
#pragma once

#include <compare>
#include <cstdint>

#include <poise/tensor.hpp>

namespace poise {

struct BlockType;

// All that a check of a part's values depends on beside the bytes.
struct ValueRules {
  enum class LastHalf : std::uint8_t { used, unused, without_code };  // the high half of the last byte
  enum class ByteCodes : std::uint8_t { any, signed4, unsigned4 };    // a byte each, where four bits would do

  DType dtype = DType::unknown;
  LastHalf last_half = LastHalf::used;
  ByteCodes codes = ByteCodes::any;
  const BlockType* blocks = nullptr;  // of ggml's that decode

  friend auto operator<=>(const ValueRules&, const ValueRules&) = default;
};

}  // namespace poise
