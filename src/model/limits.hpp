// Defines the limits of a model in any format. docs/limits.md lists them for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

inline constexpr std::size_t kMaxTensors = 2'000'000;
inline constexpr std::size_t kMaxParts = 4'000'000;  // the parts of all tensors together
inline constexpr std::size_t kMaxTensorParts = 100'000;
inline constexpr std::size_t kMaxRank = 64;  // PyTorch's limit, and zTensor 2's

// These are the limits of a vocabulary.
inline constexpr std::size_t kMaxTokens = 500'000;
inline constexpr std::uint64_t kMaxTokenizerFileBytes = std::uint64_t{256} << 20;
inline constexpr std::size_t kMaxMerges = 700'000;

// These are the limits of a configuration.
inline constexpr std::int64_t kMaxModelSize = INT32_MAX;  // hidden_size, vocab_size, ...: formats hold them in 32 bits
inline constexpr std::int64_t kMaxLayers = 65536;         // layers, heads, head_dim

}  // namespace poise
