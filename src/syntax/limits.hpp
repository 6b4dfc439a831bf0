// The limits of data that describe themselves. docs/limits.md tells users of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

// Nesting.
inline constexpr std::size_t kMaxNesting = 64;           // JSON, and CBOR
inline constexpr std::size_t kMaxManifestNesting2 = 32;  // deterministic CBOR, below its root

// Memory for the values of JSON and CBOR that are kept as a tree.
inline constexpr std::uint64_t max_value_bytes(std::uint64_t text_bytes) {
  return (std::uint64_t{80} << 20) + 2 * text_bytes;
}

}  // namespace poise
