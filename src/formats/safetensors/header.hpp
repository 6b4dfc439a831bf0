// The layout of a safetensors file:
//
//   u64            length N of the header
//   N bytes        white space, and JSON: {"__metadata__": {text: text}?, name: {"dtype": "F16", "shape": [..],
//   "data_offsets": [begin,
//                  end]}, ...}
//   rest           the tensors' bytes; offsets count from here
//
// The tensors fill the rest exactly: no holes, no overlaps, nothing after the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "bytes/checked.hpp"

namespace poise::safetensors {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of its own reader
inline constexpr std::uint64_t kSizeBytes = 8;                 // of the header's length
inline constexpr std::uint64_t kAlignment = 8;                 // of the data: that of the widest elements
inline constexpr std::string_view kMetadata = "__metadata__";

// The library reads white space before the object, with which writers align it.
inline constexpr std::string_view kWhiteSpace = " \t\n\r";

// With elements smaller than a byte, the last byte must be full.
inline bool fills_whole_bytes(unsigned bits, std::uint64_t elements) { return elements % 8 * bits % 8 == 0; }

// The bytes of elements that fill whole bytes; nothing on overflow.
inline std::optional<std::uint64_t> bytes_of(unsigned bits, std::uint64_t elements) {
  const auto whole = checked_mul(elements / 8, bits);
  return whole ? checked_add(*whole, (elements % 8 * bits + 7) / 8) : std::nullopt;
}

}  // namespace poise::safetensors
