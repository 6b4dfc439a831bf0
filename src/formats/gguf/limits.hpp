// The limits of GGUF files. docs/limits.md lists them for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise::gguf {

inline constexpr std::size_t kMaxDimensions = 4;    // ggml's limit
inline constexpr std::size_t kMaxWrittenName = 63;  // ggml's limit for names of tensors
inline constexpr std::size_t kMaxNameBytes = 1024;  // of tensors that are read
inline constexpr std::size_t kMaxKeyBytes = 65535;  // of the specification
inline constexpr std::size_t kMaxKeys = 1'000'000;  // metadata
inline constexpr std::size_t kMaxNesting = 8;       // of arrays
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kLeastAlignment = 32;    // of written files: llama.cpp stops if the data begin elsewhere
inline constexpr std::uint64_t kMaxExperts = 4096;      // in a stacked tensor
inline constexpr std::uint64_t kLeastExpertBytes = 64;  // so that a small file cannot make millions of tensors
inline constexpr std::uint64_t kMaxPatternLayers = 65536;  // with a rule for windows
inline constexpr std::uint64_t kMaxRopeFactors = 4096;     // in a tensor
inline constexpr std::size_t kMaxSplits = 65535;           // ggml counts them in 16 bits
inline constexpr std::uint64_t kMostValueText = std::uint64_t{64}
                                                << 20;  // of the budget for metadata values (ValueBudget)

}  // namespace poise::gguf
