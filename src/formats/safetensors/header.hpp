// The layout of a safetensors file:
//
//   u64            length N of the header
//   N bytes        JSON: {"__metadata__": {text: text}?, name: {"dtype": "F16", "shape": [..], "data_offsets": [begin,
//                  end]}, ...}
//   rest           the tensors' bytes; offsets count from here
//
// The tensors fill the rest exactly: no holes, no overlaps, nothing after the last one.
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/dtype.hpp>

namespace poise::safetensors {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of its own reader
inline constexpr std::uint64_t kSizeBytes = 8;                 // of the header's length
inline constexpr std::uint64_t kAlignment = 8;                 // of the data: that of the widest elements
inline constexpr std::string_view kMetadata = "__metadata__";

// With elements smaller than a byte, the last byte must be full.
inline bool fills_whole_bytes(DType dtype, std::uint64_t elements) { return elements % 8 * info(dtype).bits % 8 == 0; }

}  // namespace poise::safetensors
