// value_rules: which values a part may hold, given its type and its tensor's layout.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <poise/tensor.hpp>

#include "codec/affine.hpp"

namespace poise {

struct BlockType;

// What a check of a part's values depends on, besides the bytes.
struct ValueRules {
  enum class LastHalf : std::uint8_t { used, unused, without_code };  // the high half of the last byte
  enum class ByteCodes : std::uint8_t { any, signed4, unsigned4 };    // one a byte, for codes of four bits

  DType dtype = DType::unknown;
  LastHalf last_half = LastHalf::used;
  ByteCodes codes = ByteCodes::any;
  const BlockType* blocks = nullptr;  // of a type that decodes

  friend auto operator<=>(const ValueRules&, const ValueRules&) = default;
};

// Of the tensor's layout.
ValueRules value_rules(const Tensor& tensor, const Part& part);

// Nothing for any codes.
std::optional<CodeFormat> code_format(ValueRules::ByteCodes codes);

// "element 7 is not finite".
std::string bad_element(DType dtype, std::uint64_t element);
// What is wrong with the last byte of a part, if anything is.
std::optional<std::string> problem_with_last(ValueRules::LastHalf half, std::byte last);

}  // namespace poise
