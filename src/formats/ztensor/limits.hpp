// The limits of zTensor files, besides those of every model. docs/limits.md lists them for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;
inline constexpr std::size_t kMaxTypeNameBytes = 256;  // element types, layouts, encodings and digests

// Version 2.
inline constexpr std::size_t kMaxNameBytes2 = 1024;
inline constexpr std::size_t kMaxShards = 65'536;
inline constexpr std::size_t kMaxShardNameBytes2 = 64;

}  // namespace poise
